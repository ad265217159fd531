import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// A proxy refuses PATCH and DELETE. tus 1.0 §X-HTTP-Method-Override.
@Suite struct OverrideTests {
  private let peer = try! ServedFolder()

  private func uploader(_ transport: any Transport) async throws -> Uploader {
    let destination = try await UploadDestination.discover(peer.endpoint, named: "tus", over: SocketTransport())
    return Uploader(destination, transport: transport, retry: RetryPolicy(retries: 0))
  }

  @Test(arguments: [405, 501, 403]) func patchGoesAsPostAfterOneRefusal(_ status: Int) async throws {
    defer { peer.stop() }
    let wall = Wall(SocketTransport(), status)
    var uploader = try await uploader(wall)
    uploader.partSize = 2 << 20
    let pattern = PatternSource(length: 9 << 20, seed: 1)
    for name: BytePath in ["first", "second"] {
      _ = try await uploader.upload(pattern, as: name)
      #expect(peer.contents(of: name) == pattern.bytes(count: 9 << 20))
    }
    #expect(wall.refused == ["PATCH"], "every later one goes as POST at once, without a retry")
    #expect(wall.passed.count { $0 == "POST as PATCH" } == 10)
  }

  /// Some servers also respond 501 to chunked bodies.
  @Test(arguments: [405, 501]) func aPipeGetsThrough(_ status: Int) async throws {
    defer { peer.stop() }
    let wall = Wall(SocketTransport(), status)
    var uploader = try await uploader(wall)
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 350_000, seed: 2)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 350_000))
    #expect(wall.refused.count == (status == 405 ? 1 : 2))
  }

  @Test func partsAtOnceGoAndAreDeletedAsPosts() async throws {
    defer { peer.stop() }
    let wall = Wall(SocketTransport(.init(connections: 8)), 405)
    var uploader = try await uploader(wall)
    uploader.partsAtOnce = 3
    let pattern = PatternSource(length: 17 << 20, seed: 3)
    _ = try await uploader.upload(pattern, as: "video")
    #expect(peer.contents(of: "video") == pattern.bytes(count: 17 << 20))
    #expect(peer.unfinished() == 0)
    #expect(!wall.passed.contains("PATCH") && !wall.passed.contains("DELETE"))
  }

  /// The deletion is the first request of its context, so it is not known yet whether DELETE gets through.
  @Test func aDeletionGetsThrough() async throws {
    defer { peer.stop() }
    let wall = Wall(SocketTransport(), 405)
    let failing = FaultySource(PatternSource(length: 9 << 20), .fail(at: 8 << 20, BlobError(.io, "pulled out")))
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    var uploader = try await uploader(SocketTransport())
    uploader.journal = journal
    await #expect(throws: UploadError.self) { try await uploader.upload(failing, as: "video") }
    let session = try #require(try await journal.unfinished().first?.session)
    #expect(peer.unfinished() > 0)
    try await Tus().abort(session, UploadContext(transport: wall, endpoint: peer.endpoint, traits: UploadTraits()))
    #expect(peer.unfinished() == 0)
    #expect(wall.refused == ["DELETE"])
    await journal.close()
  }

  @Test func theNextRunKnowsAndForgetsWhatIsNotSoAnyMore() async throws {
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let pattern = PatternSource(length: 5 << 20, seed: 4)
    let origin = peer.endpoint.origin
    // The method is refused; then this is known; then the server no longer supports the field, before and after this is
    // found out.
    let walls: [(Wall, refused: [String], isKept: Bool)] = [
      (Wall(SocketTransport(), 405), ["PATCH"], true), (Wall(SocketTransport(), 405), [], true),
      (Wall(SocketTransport(), 405, methods: ["POST as PATCH"]), ["POST as PATCH"], false),
      (Wall(SocketTransport(), 405, methods: []), [], false),
    ]
    for (number, (wall, refused, isKept)) in walls.enumerated() {
      let journal = try await Journal(at: folder.path.appending("journal"))
      var uploader = try await uploader(wall)
      uploader.journal = journal
      _ = try await uploader.upload(pattern, as: BytePath("\(number)"))
      #expect(peer.contents(of: BytePath("\(number)")) == pattern.bytes(count: 5 << 20))
      #expect(wall.refused == refused, "run \(number)")
      #expect(try await journal.hosts.needsOverride(at: origin) == isKept, "run \(number)")
      #expect(try await !journal.hosts.needsOverride(at: "http://elsewhere.example:80"))
      await journal.close()
    }
  }

  /// PATCH is sent again, because an intermediary may have refused the first one. The error names PATCH.
  @Test func aServerThatTakesNeitherIsGivenUp() async throws {
    defer { peer.stop() }
    let wall = Wall(SocketTransport(), 405, methods: ["PATCH", "POST as PATCH"])
    let error = await #expect(throws: UploadError.self) {
      try await uploader(wall).upload(PatternSource(length: 5 << 20), as: "video")
    }
    #expect(error?.status == 405 && error?.recovery == .giveUp && error?.side == .destination)
    #expect(error?.message.contains("PATCH http") == true, "\(error as Any)")
    #expect(wall.refused == ["PATCH", "POST as PATCH", "PATCH"])
  }

  /// Only 204 means that the bytes were stored: another success may have created an upload, or be a page.
  @Test(arguments: [200, 201]) func aPostThatIsTakenForSomethingElseIsNotBelieved(_ status: Int) async {
    let script = Script { _, request throws(TransportError) in
      if request.method == "PATCH" { return .status(405) }
      if request.headers["X-HTTP-Method-Override"] == nil { return .created }
      return .status(status, ["Location": "/up/99", "Upload-Offset": "1000"])
    }
    let error = await BlobUploadTests.uploader(Tus(wholeUpTo: 0), script).failure()
    #expect(error?.status == status && error?.recovery == .giveUp, "\(error as Any)")
    #expect(error?.message.contains("instead of 204") == true, "\(error as Any)")
    #expect(script.methods == ["POST", "PATCH", "POST"])
  }

  /// A firewall refuses one PATCH, and the server does not support the field: PATCH is sent directly again, also in the
  /// next run.
  @Test(arguments: [400, 404, 405, 501, 201], [403, 405])
  func aMethodThatWasRefusedOnceIsNotRefusedForEver(_ status: Int, _ refusal: Int) async throws {
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let refusals = Atomic(1)
    let script = Script { _, request throws(TransportError) in
      switch request.method {
      case "POST" where request.headers["X-HTTP-Method-Override"] == nil: .created
      case "POST": .status(status, ["Location": "/up/99"])
      case "HEAD": .at(0, of: 1000)
      case "DELETE": .status(204)
      default: refusals.exchange(0, ordering: .relaxed) > 0 ? .status(refusal) : .at(1000)
      }
    }
    var uploader = BlobUploadTests.uploader(Tus(wholeUpTo: 0), script)
    uploader.journal = journal
    let error = await uploader.failure()
    // Bytes that were stored as a new upload cannot be resumed.
    #expect(status == 201 ? error?.status == 201 : error == nil, "\(error as Any)")
    // After a 403 the server is queried for the upload.
    let asked = refusal == 403 ? ["HEAD"] : []
    if status != 201 { #expect(script.methods == ["POST", "PATCH"] + asked + ["POST", "PATCH"]) }
    #expect(try await !journal.hosts.needsOverride(at: uploader.destination.endpoint.origin))
    await journal.close()
  }

  /// A server that responds 403 because the upload no longer exists refuses neither the method nor the file.
  @Test func anUploadThatIsGoneIsBegunAnew() async throws {
    let transport = Script { number, request throws(TransportError) in
      switch (number, request.method) {
      case (1, "PATCH"): throw TransportError(.broken, "the connection broke")
      case (3, "PATCH"), (4, "HEAD"): .status(403)
      case (_, "DELETE"): .status(404)
      case (_, "HEAD"): .at(0, of: 1000)
      case (_, "POST"): .created
      default: .at(1000)
      }
    }
    #expect(await BlobUploadTests.uploader(Tus(wholeUpTo: 0), transport).failure() == nil)
    #expect(transport.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "DELETE", "POST", "PATCH"])
  }

  /// The 403 concerns the file, not the method: other files are sent as before.
  @Test func aRefusalOfAFileIsNoRefusalOfTheMethod() async {
    let isRefusing = Atomic(true)
    let script = Script { _, request throws(TransportError) in
      switch request.method {
      case "POST" where request.headers["X-HTTP-Method-Override"] == nil: .created
      case "HEAD": .at(0, of: 1000)
      case "DELETE": .status(204)
      default: isRefusing.load(ordering: .relaxed) ? .status(403) : .at(1000)
      }
    }
    let uploader = BlobUploadTests.uploader(Tus(wholeUpTo: 0), script)
    #expect(await uploader.failure()?.status == 403)
    isRefusing.store(false, ordering: .relaxed)
    let before = script.requests.count
    #expect(await uploader.failure(as: "b.mov") == nil)
    #expect(script.methods.dropFirst(before) == ["POST", "PATCH"])
  }
}

/// Refuses requests with certain methods.
private final class Wall: Transport {
  private let transport: any Transport
  private let status: Int
  private let methods: Set<String>
  private let seen = Mutex<(refused: [String], passed: [String])>(([], []))

  init(_ transport: any Transport, _ status: Int, methods: Set<String> = ["PATCH", "DELETE"]) {
    self.transport = transport
    self.status = status
    self.methods = methods
  }

  var refused: [String] { seen.withLock { $0.refused } }
  var passed: [String] { seen.withLock { $0.passed } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let name = request.method + (request.headers["X-HTTP-Method-Override"].map { " as \($0)" } ?? "")
    if methods.contains(name) {
      seen.withLock { $0.refused.append(name) }
      return .status(status)
    }
    seen.withLock { $0.passed.append(name) }
    return try await transport.send(request, body: body, on)
  }
}
