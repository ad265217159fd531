import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests which refusals concern one file, and which end the queue.
@Suite struct QueueRefusalTests {
  /// One folder or name may be refused before the server has accepted any file.
  @Test func aRefusalOfTheFirstFileEndsNothing() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in .status(request.url.path.hasSuffix("a") ? 403 : 201) }
    var queue = desk.queue(script)
    queue.jobs = 1
    let outcomes = try await desk.run(queue, ["a", "b", "c"])
    #expect(outcomes.sent == 2)
    #expect(outcomes.error("a")?.status == 403 && outcomes.error("a")?.side == .file)
  }

  /// One name may belong to a folder, to which the server redirects, or be one that the server does not accept.
  @Test(arguments: [301, 302, 307, 308, 404, 405, 501, 507], ["a", "f"])
  func aServerThatRefusesOnePlaceStoresTheOthers(_ status: Int, _ refused: String) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      request.url.path.hasSuffix("/\(refused)")
        ? .status(status, ["Location": "http://other.example/"]) : .status(201)
    }
    var queue = desk.queue(script)
    queue.jobs = 1
    let outcomes = try await desk.run(queue, ["a", "b", "c", "d", "e", "f", "g", "h"])
    #expect(outcomes.sent == 7)
    #expect(outcomes.error(refused)?.status == status && outcomes.error(refused)?.side == .file)
  }

  /// Files are stored until the server starts to redirect each to its login page.
  @Test func aServerThatRefusesManyPlacesInARowEndsTheRun() async throws {
    let desk = try await Desk()
    let script = Script { number, _ throws(TransportError) in
      // Each file is asked for before it is sent.
      number < 6 ? .status(201) : .status(302, ["Location": "/login"])
    }
    var queue = desk.queue(script)
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<40).map { "\($0)" }, outcomes, overwrite: true)
    }
    #expect(error?.status == 302 && error?.side == .destination, "\(error as Any)")
    #expect(error?.message.contains("12 files in a row") == true, "\(error as Any)")
    #expect(outcomes.sent == 3 && outcomes.error("4")?.side == .file && outcomes["15"] == nil)
  }

  @Test(arguments: [401, 407, 421]) func aServerThatWantsCredentialsEndsTheRun(_ status: Int)
    async throws
  {
    let desk = try await Desk()
    let script = Script { number, _ throws(TransportError) in .status(number == 0 ? 201 : status) }
    var queue = desk.queue(script)
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, ["a", "b", "c"], outcomes, overwrite: true)
    }
    #expect(error?.status == status && outcomes["c"] == nil)
  }

  /// After a file that exceeds a quota, others may fit; a full disk has no space for any, whether or not it has stored
  /// files before.
  @Test(arguments: [0, 4]) func aFullDiskEndsTheRunAfterAFewFiles(_ stored: Int) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      let number = Int(String(decoding: request.url.lastComponent, as: UTF8.self)) ?? 0
      return .status(number < stored && number != 1 ? 201 : 507)
    }
    var queue = desk.queue(script)
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<20).map { "\($0)" }, outcomes, overwrite: true)
    }
    #expect(error?.status == 507 && error?.side == .destination, "\(error as Any)")
    #expect(error?.message.contains("3 files in a row") == true, "\(error as Any)")
    #expect(outcomes.error("\(stored)")?.side == .file && outcomes.error("\(stored + 2)")?.side == .destination)
    #expect(outcomes["\(stored + 3)"] == nil)
  }

  /// A check of files sent before follows the same rule: one name may be refused, and the others are still queried. A
  /// server that refuses the first few refuses all.
  @Test(arguments: [302, 405, 507], [false, true]) func aCheckThatIsRefusedForOneFileAsksForTheOthers(
    _ status: Int, _ forAll: Bool
  ) async throws {
    let desk = try await Desk()
    let names = ["a", "b", "c", "d", "e"]
    try await desk.run(desk.queue(Script(.status(201))), names, overwrite: true)
    let script = Script { _, request throws(TransportError) in
      forAll || request.url.path.hasSuffix("/b")
        ? .status(status, ["Location": "http://other.example/"]) : .status(200, ["Content-Length": "1000"])
    }
    var queue = desk.queue(script)
    queue.jobs = 1
    queue.check = true
    let outcomes = Outcomes()
    do {
      try await desk.run(queue, names, outcomes, overwrite: true)
      #expect(!forAll && outcomes.doneBefore == 4)
    } catch {
      #expect(forAll && error.status == status && error.side == .destination && outcomes["d"] == nil)
    }
    #expect(outcomes.error("b")?.status == status && outcomes.error("b")?.side == .file)
  }

  @Test(arguments: [1, 2, 3, 9]) func aServerThatRefusesAllEndsTheRun(_ count: Int) async throws {
    let desk = try await Desk()
    let script = Script(.status(403))
    var queue = desk.queue(script)
    queue.jobs = 1
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<count).map { "\($0)" })
    }
    #expect(error?.status == 403 && error?.side == .destination, "\(error as Any)")
    #expect(script.requests.count == min(count, 3))
  }

  /// The server creates each upload, and then refuses its bytes: it has stored nothing.
  @Test(arguments: ["tus", "resumable"]) func aServerThatRefusesTheBytesOfAllEndsTheRun(_ name: String) async throws {
    let desk = try await Desk()
    let uploadProtocol: any UploadProtocol = name == "tus" ? Tus() : IETFResumable()
    let script = Script { number, request throws(TransportError) in
      let open: HTTPHeaders = ["Location": "/up/\(number)", "Upload-Offset": "0", "Upload-Complete": "?0"]
      if request.method == "HEAD" { return .status(200, open) }
      return request.url.path.hasPrefix("/up/") ? .status(403) : .status(201, open)
    }
    var queue = desk.queue(script, uploadProtocol)
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<5).map { "\($0)" }, outcomes)
    }
    #expect(error?.status == 403 && error?.side == .destination, "\(error as Any)")
    #expect(outcomes.error("2")?.side == .destination && outcomes["3"] == nil)
  }

  /// The server stores each file under a temporary name, and responds 403 to a HEAD for it.
  @Test func aServerThatRefusesToBeAskedForAnyFileEndsTheRun() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      switch request.method {
      case "PUT": .status(201)
      case "DELETE": .status(204)
      case "HEAD" where !request.url.path.contains("/.fullbore-"): .status(404)
      default: .status(403)
      }
    }
    var queue = desk.queue(script, WebDAV())
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<5).map { "\($0)" }, outcomes)
    }
    #expect(error?.status == 403 && error?.side == .destination, "\(error as Any)")
    #expect(outcomes.error("2")?.side == .destination && outcomes["3"] == nil)
    #expect(script.methods.contains("PUT"))
  }

  /// The server has bytes of one file and may store others, so every file is tried. In the end it stores none.
  @Test func refusalsEndNothingWhileTheServerHoldsBytes() async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in
      switch (request.method, number) {
      case ("POST", 0): .created
      case ("PATCH", 1): .at(300)
      case ("HEAD", _): .at(300, of: 1000)
      case ("DELETE", _): .status(204)
      default: .status(403)
      }
    }
    var queue = desk.queue(script, Tus(), partSize: 300)
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<5).map { "\($0)" }, outcomes)
    }
    #expect(error?.status == 403 && error?.side == .destination, "\(error as Any)")
    for name in 0..<5 { #expect(outcomes.error("\(name)")?.side == .file, "\(name)") }
  }

  /// A server that says when it will have room is asked again then, as one that says when it will be available.
  @Test func aFullDiskThatWillHaveRoomEndsNothing() async throws {
    let desk = try await Desk()
    let script = Script { number, _ throws(TransportError) in
      number < 2 ? .status(507, ["Retry-After": "7"]) : .status(201)
    }
    let clock = LeapingClock()
    var queue = desk.queue(script)
    queue.uploader.clock = clock
    queue.jobs = 1
    #expect(try await desk.run(queue, ["a", "b"]).sent == 2)
    #expect(clock.waits == [.seconds(7), .seconds(7)])
    let full = Script(.status(507, ["Retry-After": "7"]))
    queue.uploader.transport = full
    queue.uploader.retry = RetryPolicy(retries: 1)
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<9).map { "\($0)" })
    }
    #expect(error?.status == 507 && error?.side == .destination, "\(error as Any)")
    #expect(full.methods.count == 6, "three files, two attempts each")
  }

  /// The destination of a folder is the URL of a file: no file can be sent below it.
  @Test(arguments: ["put", "tus"]) func aFileInThePlaceOfTheFolderIsReportedOnce(_ name: String) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      switch (request.method, request.url.path) {
      case ("PUT", _), ("POST", _): .status(409)
      case ("HEAD", "/in"): .status(200, ["Content-Length": "5"])
      default: .status(404)
      }
    }
    var queue = desk.queue(script, name == "put" ? PlainPut() : Tus())
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<20).map { "\($0)" }, outcomes)
    }
    #expect(error?.side == .destination && error?.message.contains("is a file") == true, "\(error as Any)")
    #expect(outcomes["1"] == nil)
  }

  /// Each name may be taken while others are free.
  @Test(arguments: [301, 200]) func aFolderWhoseNamesAreTakenIsNoFile(_ status: Int) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      switch (request.method, request.url.path) {
      case ("POST", _): .status(409)
      case ("HEAD", "/in"): .status(status, ["Location": "/in/", "Content-Length": "5"])
      default: .status(200, ["Content-Length": "5"])
      }
    }
    var queue = desk.queue(script, Tus())
    queue.jobs = 1
    let outcomes = try await desk.run(queue, (0..<20).map { "\($0)" })
    #expect(outcomes.error("19")?.status == 409)
  }
}
