import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Which refusals concern one file, and which end the queue.
@Suite struct QueueRefusalTests {
  /// One folder or name may be refused, before the server has accepted anything.
  @Test func aRefusalOfTheFirstFileEndsNothing() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in .status(request.url.path.hasSuffix("a") ? 403 : 201) }
    var queue = desk.queue(script)
    queue.jobs = 1
    let outcomes = try await desk.run(queue, ["a", "b", "c"])
    #expect(outcomes.sent == 2)
    #expect(outcomes.error("a")?.status == 403 && outcomes.error("a")?.side == .file)
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
    let dialect: any UploadProtocol = name == "tus" ? Tus() : IETFResumable()
    let open: HTTPHeaders = ["Location": "/up/1", "Upload-Offset": "0", "Upload-Complete": "?0"]
    let script = Script { _, request throws(TransportError) in
      if request.method == "HEAD" { return .status(200, open) }
      return request.url.path != "/up/1" ? .status(201, open) : .status(403)
    }
    var queue = desk.queue(script, dialect)
    queue.jobs = 1
    let outcomes = Outcomes()
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, (0..<5).map { "\($0)" }, outcomes)
    }
    #expect(error?.status == 403 && error?.side == .destination, "\(error as Any)")
    #expect(outcomes.error("2")?.side == .destination && outcomes["3"] == nil)
  }

  /// The server takes each file under a temporary name, and refuses to tell of it with 403 to HEAD.
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

  /// Where the server holds bytes of one file, it may store others, so that every file is tried. It stores none in the end.
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
}
