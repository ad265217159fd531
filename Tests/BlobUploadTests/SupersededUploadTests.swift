import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// Two folders have a file of the same name, and are pushed to one folder at the server repeatedly.
@Suite struct SupersededUploadTests {
  /// How the server handles the second upload of a name.
  enum Server: Sendable, CaseIterable {
    /// Each upload has its own URL, and no file has the name, as with tusd.
    case keepsBoth
    /// Like `keepsBoth`, after the uploads have expired.
    case hasNeither
    case replaces
    /// The server lets nobody read the file, and reports that the uploads were stored under the name.
    case replacesInSecret

    func answer(_ request: HTTPRequest, upload number: Int) -> HTTPResponse {
      let isUpload = request.url.path.hasPrefix("/up/")
      switch (request.method, self) {
      case ("POST", _): return .status(201, ["Location": "/up/\(number)"])
      case ("PATCH", _): return .at(1000)
      case ("HEAD", .keepsBoth) where isUpload, ("HEAD", .replaces) where isUpload: return .at(1000, of: 1000)
      case ("GET", .keepsBoth) where isUpload: return .status(206, ["Content-Range": "bytes 0-0/1000"])
      case ("HEAD", .replaces): return .status(200, ["Content-Length": "1000"])
      case ("HEAD", .replacesInSecret) where isUpload:
        return .status(
          200, ["Upload-Offset": "1000", "Upload-Length": "1000", "Content-Location": "/in/IMG_1.JPG"])
      case ("GET", .replacesInSecret) where isUpload: return .status(405)
      default: return .status(404)
      }
    }
  }

  @Test(arguments: Server.allCases, [false, true])
  func bothAreSentAgainOnlyWhereTheServerHasOne(_ server: Server, _ overwrite: Bool) async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in server.answer(request, upload: number) }
    #expect(try await push("x", to: script, desk, overwrite).sent == 1)
    #expect(try await push("y", to: script, desk, overwrite).sent == 1)
    #expect(try await desk.journal.unfinished().isEmpty)
    #expect(try await desk.journal.summary().map(\.count) == [1])
    let outcomes = try await push("x", to: script, desk, overwrite)
    let isKept = server == .keepsBoth
    #expect(outcomes.sent == (isKept ? 0 : 1))
    let count = script.requests.count
    // The server was queried once, and the journal contains the result.
    #expect(try await push("x", to: script, desk, overwrite).doneBefore == 1)
    #expect(script.requests.count == count)
    #expect(try await desk.journal.summary().map(\.count) == [isKept ? 2 : 1])
    #expect(try await push("y", to: script, desk, overwrite).sent == (isKept ? 0 : 1))
  }

  /// The server is not queried about a version that no longer exists.
  @Test func anotherVersionIsSentWithoutAQuestion() async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in
      Server.keepsBoth.answer(request, upload: number)
    }
    for folder in ["x", "y"] { try await push(folder, to: script, desk) }
    let count = script.requests.count
    #expect(try await push("x", to: script, desk, seed: 7).sent == 1)
    #expect(Array(script.methods.dropFirst(count)) == ["POST", "PATCH"])
  }

  /// An unreachable server tells nothing about an upload: it is neither done nor sent again.
  @Test func aServerThatDoesNotAnswerIsAskedByTheNextPush() async throws {
    let desk = try await Desk()
    let isAway = Atomic(false)
    let script = Script { number, request throws(TransportError) in
      if isAway.load(ordering: .relaxed) { return .status(503) }
      return Server.keepsBoth.answer(request, upload: number)
    }
    for folder in ["x", "y"] { try await push(folder, to: script, desk) }
    isAway.store(true, ordering: .relaxed)
    #expect(try await push("x", to: script, desk).error("IMG_1.JPG")?.status == 503)
    isAway.store(false, ordering: .relaxed)
    #expect(try await push("x", to: script, desk).doneBefore == 1)
  }

  /// Fullbore's own server publishes files, also for uploads that have their own URLs.
  @Test func aServerThatPublishesFilesHasReplacedTheFirst() async throws {
    let desk = try await Desk()
    let peer = try ServedFolder()
    let destination = try await UploadDestination.discover(peer.endpoint, named: "tus", over: SocketTransport())
    for (number, folder) in ["x", "y", "x", "y"].enumerated() {
      var uploader = Uploader(destination, transport: SocketTransport(), journal: desk.journal)
      uploader.partSize = 400
      let outcomes = try await push(folder, uploader, desk, overwrite: true)
      #expect(outcomes.sent == 1, "\(number)")
      #expect(peer.contents(of: "IMG_1.JPG") == Self.source(folder).bytes(count: 1000))
      // Deleting the file does not bring back the first one.
      if number == 1 {
        let path = peer.folder.appending("IMG_1.JPG")
        try #require(path.withCString { Platform.unlink($0) } == 0)
      }
    }
  }

  private static func source(_ folder: String, seed: UInt64 = 0) -> PatternSource {
    PatternSource(length: 1000, seed: seed + (folder == "x" ? 1 : 2))
  }

  @discardableResult
  private func push(
    _ folder: String, to script: Script, _ desk: Desk, _ overwrite: Bool = false, seed: UInt64 = 0
  ) async throws -> Outcomes {
    try await push(folder, uploader(Tus(wholeUpTo: 0), script), desk, overwrite: overwrite, seed: seed)
  }

  private func push(
    _ folder: String, _ uploader: Uploader, _ desk: Desk, overwrite: Bool, seed: UInt64 = 0
  ) async throws -> Outcomes {
    var uploader = uploader
    uploader.journal = desk.journal
    let kept = JournalDestination(
      endpoint: uploader.destination.endpoint.text, protocolName: "tus", overwrite: overwrite)
    let queue = UploadQueue(
      uploader, journal: desk.journal, destinationID: try await desk.journal.destinationID(kept))
    let source = Self.source(folder, seed: seed)
    let item = UploadItem(
      source: source, info: source.info, identity: BytePath("/\(folder)/IMG_1.JPG"),
      target: uploader.destination.target("IMG_1.JPG", length: 1000, overwrite: overwrite))
    let outcomes = Outcomes()
    let left = Mutex<[UploadItem]?>([item])
    try await queue.run({ left.withLock { $0.take() } }, outcomes)
    return outcomes
  }
}
