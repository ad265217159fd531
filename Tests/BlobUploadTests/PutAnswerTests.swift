import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// Tests successful responses to PUT, which some servers give to every request.
@Suite struct PutAnswerTests {
  private static let page = HTTPResponse.status(200, ["Content-Length": "670"], text: "welcome")

  /// A server with the response `put` to PUT, and the given responses to HEAD and GET.
  private func server(
    put: Int = 200, head: HTTPResponse, get: HTTPResponse = .status(405)
  ) -> Script {
    Script { _, request throws(TransportError) in
      switch request.method {
      case "PUT": .status(put)
      case "HEAD": head
      default: get
      }
    }
  }

  @Test(arguments: [
    (HTTPResponse.status(404), HTTPResponse.status(404)), (.status(404), .status(405)), (page, page),
    (.status(405), .status(404)), (.status(405), .status(206, ["Content-Range": "bytes 0-0/670"])),
    (.status(200, ["Content-Length": "0"]), .status(200, ["Content-Length": "0"])),
  ])
  func aServerThatHasNothingThereIsNotBelieved(_ head: HTTPResponse, _ get: HTTPResponse) async {
    for status in [200, 201, 204] {
      let error = await uploader(PlainPut(), server(put: status, head: head, get: get), knowsHost: false).failure()
      #expect(error?.side == .destination)
      #expect(error?.message.contains("answered \(status), but the server has") == true, "\(error as Any)")
    }
  }

  /// 409 means that the name is taken, or, on a WebDAV server, that the folder is missing: a query tells which.
  @Test(arguments: [404, 410]) func aMissingFolderIsNoNameInUse(_ status: Int) async {
    let none = await uploader(PlainPut(), server(put: 409, head: .status(status), get: .status(status))).failure()
    #expect(none?.status == nil && none?.recovery == .giveUp && none?.side == .file, "\(none as Any)")
    #expect(none?.message.contains("Is its folder there?") == true, "\(none as Any)")
    for head in [Self.page, .status(403), .status(405)] {
      let some = await uploader(PlainPut(), server(put: 409, head: head)).failure()
      #expect(some?.status == 409, "\(some as Any)")
    }
  }

  /// Only WebDAV makes folders. The server is asked whether it speaks that.
  @Test(arguments: [404, 405], ["put", "resumable"])
  func aRefusalByAWebDAVServerNamesDav(_ status: Int, _ name: String) async {
    for offered in ["1, 2", "addressbook"] {
      let script = Script { _, request throws(TransportError) in
        request.method == "OPTIONS" ? .status(200, ["DAV": offered]) : .status(status)
      }
      let uploadProtocol: any UploadProtocol = name == "put" ? PlainPut() : IETFResumable()
      let error = await uploader(uploadProtocol, script, limits: PartLimits(firstPart: .max)).failure()
      #expect(error?.status == status, "\(error as Any)")
      #expect(error?.message.contains("with dav+ instead of \(name)+") == (offered == "1, 2"), "\(error as Any)")
    }
  }

  @Test(arguments: [200, 404]) func aWebDAVServerThatIsNoTusServerNamesDav(_ status: Int) async {
    let script = Script(.status(status, ["DAV": "1"]))
    do {
      _ = try await UploadDestination.discover(host, named: "tus", over: script)
      Issue.record("it is taken for a tus server")
    } catch { #expect(error.message.contains("with dav+ instead of tus+"), "\(error)") }
  }

  /// Whatever it is asked, it says that it has done it.
  @Test(arguments: [200, 201, 204], ["put", "resumable"])
  func aServerThatSaysTheSameToEverythingIsNotBelieved(_ status: Int, _ name: String) async {
    let limits = PartLimits(firstPart: .max)
    for headers in [[:], ["Content-Length": "0"], ["Content-Length": "2", "ETag": "\"1\""]] as [HTTPHeaders] {
      let script = Script(.status(status, status == 204 ? [:] : headers))
      let uploadProtocol: any UploadProtocol = name == "put" ? PlainPut() : IETFResumable()
      let error = await uploader(uploadProtocol, script, limits: limits, knowsHost: false).failure()
      #expect(error?.side == .destination, "\(headers): \(error as Any)")
      #expect(error?.message.contains("answered \(status), but the server has") == true, "\(error as Any)")
    }
  }

  /// A server that supports the field for the modification time confirms it, so no query is needed.
  @Test func anAnswerThatOnlyAServerGivesThatHasTheFileIsBelieved() async throws {
    let script = Script(.status(201, ["X-OC-MTime": "accepted"]))
    let uploader = uploader(PlainPut(), script, knowsHost: false)
    var target = uploader.destination.target("a", length: 1000)
    let source = PatternSource(length: 1000)
    target.modified = 1_700_000_000_000_000_000
    _ = try await uploader.upload(source, source.info, to: target, progress: UploadProgress())
    #expect(script.methods == ["PUT"])
    // The request did not contain the field, so this response proves nothing.
    let other = Script(.status(201, ["X-OC-MTime": "accepted"]))
    #expect(await BlobUploadTests.uploader(PlainPut(), other, knowsHost: false).failure()?.side == .destination)
  }

  /// 201 to a POST may have created a resource with another name.
  @Test func aCreatedFileIsFoundAtTheLocationOfTheResponse() async {
    let script = Script { _, request throws(TransportError) in
      switch (request.method, request.url.path) {
      case ("POST", _): .status(201, ["Location": "/made/1"])
      case ("HEAD", "/made/1"): .status(200, ["Content-Length": "1000"])
      default: .status(404)
      }
    }
    let limits = PartLimits(firstPart: .max)
    #expect(await uploader(IETFResumable(), script, limits: limits, knowsHost: false).failure() == nil)
  }

  @Test(arguments: [
    (HTTPResponse.status(200, ["Content-Length": "1000"]), HTTPResponse.status(405)),
    (.status(405), .status(206, ["Content-Range": "bytes 0-0/1000"])), (.status(405), .status(405)),
    (.status(501), .status(501)), (.status(403), .status(403)), (.status(401), .status(401)),
    (.status(200, ["Content-Length": "0"]), .status(206, ["Content-Range": "bytes 0-0/1000"])),
    (.status(302, ["Location": "http://elsewhere.example/a"]), .status(404)),
  ])
  func aServerThatHasItOrLetsNobodyLookIsBelieved(_ head: HTTPResponse, _ get: HTTPResponse) async {
    for status in [200, 201, 204] {
      let script = server(put: status, head: head, get: get)
      #expect(await uploader(PlainPut(), script, knowsHost: false).failure() == nil)
    }
  }

  /// Many files of one folder are sent concurrently: only one of them triggers a query.
  @Test(arguments: [200, 201, 204]) func oneFileIsAskedForAfterASuccess(_ status: Int) async throws {
    let desk = try await Desk()
    let script = server(put: status, head: .status(200, ["Content-Length": "1000"]))
    let names = (0..<200).map { "\($0)" }
    #expect(try await desk.run(desk.queue(script, knowsHost: false), names).sent == 200)
    #expect(script.methods.count { $0 == "HEAD" } == 1)
    #expect(script.methods.count { $0 == "PUT" } == 200, "none goes twice")
  }

  @Test func aPageForEverythingEndsThePush() async throws {
    let desk = try await Desk()
    let script = server(head: Self.page, get: Self.page)
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(desk.queue(script, knowsHost: false), (0..<200).map { "\($0)" })
    }
    #expect(error?.side == .destination)
    #expect(try await desk.journal.entries(.done, limit: -1).isEmpty)
  }

  /// An empty page cannot be distinguished from an empty file.
  @Test func anEmptyFileProvesNothing() async throws {
    let desk = try await Desk()
    let script = server(head: .status(200, ["Content-Length": "0"]), get: .status(200, ["Content-Length": "0"]))
    var queue = desk.queue(script, knowsHost: false)
    queue.jobs = 1
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, ["empty", "full"], lengths: [0, 1000])
    }
    #expect(error?.message.contains("has 0 bytes there, and was sent 1000") == true, "\(error as Any)")
  }

  @Test func aPlainServerThatGetsAResumableUploadIsAskedToo() async {
    let limits = PartLimits(firstPart: .max)
    let nothing = Script(.status(200), Self.page, Self.page)
    #expect(await uploader(IETFResumable(), nothing, limits: limits, knowsHost: false).failure()?.side == .destination)
    let there = Script(.status(200), .status(200, ["Content-Length": "1000"]))
    #expect(await uploader(IETFResumable(), there, limits: limits, knowsHost: false).failure() == nil)
  }

  /// One host stores files below one path, and returns a page for every URL below another.
  @Test func eachFolderIsAskedForOnce() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      if request.method == "PUT" { return .status(200) }
      return request.url.path.hasPrefix("/in/a/") ? .status(200, ["Content-Length": "1000"]) : Self.page
    }
    var queue = desk.queue(script, knowsHost: false)
    queue.jobs = 1
    #expect(try await desk.run(queue, ["a/1", "a/2", "a/3"]).sent == 3)
    #expect(script.methods.count { $0 == "HEAD" } == 1)
    let error = await #expect(throws: UploadError.self) { try await desk.run(queue, ["b/1"]) }
    #expect(error?.side == .destination && error?.message.contains("but the server has") == true, "\(error as Any)")
  }

  @Test func anAnswerThatShowsThatItIsTrueSaysNothingOfAnotherFolder() async {
    let script = Script { _, request throws(TransportError) in
      switch (request.method, request.url.path.hasPrefix("/in/a/")) {
      case ("PUT", true): .status(201, ["X-OC-MTime": "accepted"])
      case ("PUT", false): .status(201)
      default: .status(404)
      }
    }
    let uploader = uploader(PlainPut(), script, knowsHost: false)
    func failure(_ name: BytePath) async -> UploadError? {
      var target = uploader.destination.target(name, length: 1000)
      let source = PatternSource(length: 1000)
      target.modified = 1_700_000_000_000_000_000
      do {
        _ = try await uploader.upload(source, source.info, to: target, progress: UploadProgress())
        return nil
      } catch {
        return error
      }
    }
    #expect(await failure("a/1") == nil)
    #expect(await failure("b/1")?.message.contains("has nothing there") == true)
    #expect(script.methods == ["PUT", "PUT", "HEAD", "GET"])
  }

  /// A push may write to any number of folders.
  @Test func aBoundedNumberOfFoldersIsRemembered() {
    let answers = PutAnswers()
    func request(_ number: Int) -> HTTPRequest { HTTPRequest("PUT", HTTPURL("http://a.example/\(number)/x")!) }
    for number in 0...1000 { answers.trust(folderOf: request(number).url) }
    #expect(!answers.isTrusted(after: request(0), .status(200)))
    #expect(answers.isTrusted(after: request(1000), .status(200)))
  }

  /// A hotspot's log-in page, or that of a proxy under maintenance, in the middle of a push.
  @Test(arguments: [
    HTTPResponse.status(200, ["Content-Type": "text/html"]), .status(204), .status(201, ["Server": "portal"]),
  ])
  func successesThatBeginToLookOtherwiseAreChecked(_ other: HTTPResponse) async throws {
    let script = Script { number, request throws(TransportError) in
      let isOnline = number < 3
      return switch request.method {
      case "PUT": isOnline ? .status(201, ["Server": "nas"]) : other
      default: isOnline ? .status(200, ["Content-Length": "300"]) : other
      }
    }
    let uploader = uploader(PlainPut(), script, knowsHost: false)
    let source = PatternSource(length: 300)
    func failure(_ name: String) async -> UploadError? {
      let target = UploadTarget(
        endpoint: host, url: HTTPURL("http://media.example/in/\(name)")!, path: BytePath(name), length: 300)
      do {
        _ = try await uploader.upload(source, source.info, to: target, progress: UploadProgress())
        return nil
      } catch {
        return error
      }
    }
    #expect(await failure("1") == nil)
    #expect(await failure("2") == nil)
    #expect(script.methods == ["PUT", "HEAD", "PUT"])
    #expect(await failure("3")?.message.contains("does not store what it is sent there") == true)
  }

  @Test func aServerOfAFewLooksIsAskedOnceForEach() async throws {
    let answers = PutAnswers()
    let request = HTTPRequest("PUT", HTTPURL("http://a.example/in/x")!)
    var asked = 0
    for _ in 0..<3 {
      for status in [200, 201, 204] where !answers.isTrusted(after: request, .status(status)) {
        try await answers.trust(.status(status), inFolderOf: request.url) { () async throws(UploadError) in
          asked += 1
          return true
        }
      }
    }
    #expect(asked == 3)
  }

  /// Each node of a delivery network has its own name in `Server`.
  @Test func aServerOfManyNamesIsAskedForAFewFiles() async throws {
    let answers = PutAnswers()
    var asked = 0
    for folder in ["in", "out"] {
      let request = HTTPRequest("PUT", HTTPURL("http://a.example/\(folder)/x")!)
      for node in 0..<200 {
        let response = HTTPResponse.status(201, ["Server": "ECS (dcb/\(folder)\(node))"])
        if answers.isTrusted(after: request, response) { continue }
        try await answers.trust(response, inFolderOf: request.url) { () async throws(UploadError) in
          asked += 1
          return true
        }
      }
      // Another kind of success is still checked.
      #expect(!answers.isTrusted(after: request, .status(200, ["Content-Type": "text/html"])))
    }
    #expect(asked <= 20, "\(asked)")
  }
}
