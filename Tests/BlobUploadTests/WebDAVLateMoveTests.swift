import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import TestSupport
import Testing

@testable import BlobUpload

/// A MOVE that may replace a file arrives after the upload has ended, at a server that deletes the destination of a MOVE
/// before it finds that the source is gone.
@Suite struct WebDAVLateMoveTests {
  /// A server on which `a` has other bytes, and a transport that holds the first MOVE back that may replace it.
  private struct Setup {
    let peer: DavPeer
    let folder: ScratchFolder
    let journal: Journal
    let source = PatternSource(length: 100)
    let newer = PatternSource(length: 120, seed: 1)
    private let held = Monitor<HTTPRequest?>(nil)

    init(deletesBeforeMove: Bool = true, refusing refusal: @escaping DavPeer.Refusal = { _ in nil }) async throws {
      peer = DavPeer(deletesBeforeMove: deletesBeforeMove, refusing: refusal)
      peer.publish([1, 2, 3], as: "a")
      folder = try ScratchFolder()
      journal = try await Journal(at: folder.path.appending("journal"))
    }

    /// `code`: what the upload gets in place of an answer.
    func holding(_ code: TransportError.Code) -> FaultyTransport {
      FaultyTransport(SocketTransport()) { [held] _, request in
        guard request.method == "MOVE", request.headers["Overwrite"] == "T" else { return .none }
        return held.update { held in
          if held != nil { return .none }
          held = request
          return .before(code)
        }
      }
    }

    func uploader(_ transport: any Transport = SocketTransport()) -> Uploader {
      let uploadProtocol = WebDAV()
      var uploader = Uploader(
        UploadDestination(
          endpoint: peer.endpoint, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits(at: peer.endpoint)),
        transport: transport, journal: journal, retry: RetryPolicy(retries: 3))
      uploader.clock = LeapingClock()
      return uploader
    }

    /// The held request arrives now.
    func deliver() async throws {
      let request = try #require(held.update { $0 })
      _ = try await SocketTransport().send(request, body: nil, Exchange())
    }

    func leftover() async throws -> JournalEntry? { try await journal.unfinished().first { $0.isLeftover } }
  }

  @Test(arguments: [TransportError.Code.timeout, .cancelled])
  func lateMoveDeletesNothing(_ code: TransportError.Code) async throws {
    let setup = try await Setup()
    defer { setup.peer.stop() }
    let uploader = setup.uploader(setup.holding(code))
    if code == .cancelled {
      // The process is ended at the MOVE, and another run begins with its journal.
      await #expect(throws: UploadError.self) {
        _ = try await uploader.upload(setup.source, as: "a", overwrite: true)
      }
    }
    _ = try await uploader.upload(setup.source, as: "a", overwrite: true)
    let bytes = setup.source.bytes(count: 100)
    #expect(setup.peer.contents(of: "a") == bytes)
    try await setup.deliver()
    #expect(setup.peer.contents(of: "a") == bytes, "\(setup.peer.requests)")
    #expect(setup.peer.unfinished() == 0)
    await setup.journal.close()
  }

  /// The source has another version before the MOVE of the first one arrives.
  @Test(arguments: [TransportError.Code.timeout, .cancelled], [true, false])
  func lateMoveOfAnOlderVersionReplacesNothing(_ code: TransportError.Code, _ deletesBeforeMove: Bool) async throws {
    let setup = try await Setup(deletesBeforeMove: deletesBeforeMove)
    defer { setup.peer.stop() }
    do {
      _ = try await setup.uploader(setup.holding(code)).upload(setup.source, as: "a", overwrite: true)
      #expect(code == .timeout)
    } catch {
      #expect(code == .cancelled, "\(error)")
    }
    _ = try await setup.uploader().upload(setup.newer, as: "a", overwrite: true)
    let bytes = setup.newer.bytes(count: 120)
    #expect(setup.peer.contents(of: "a") == bytes)
    try await setup.deliver()
    #expect(setup.peer.contents(of: "a") == bytes, "\(setup.peer.requests)")
    #expect(setup.peer.unfinished() == 0)
    await setup.journal.close()
  }

  /// The server does not take the new version in place of the temporary file that a MOVE may still publish.
  @Test func newVersionIsNotSentWhereALateMoveWouldReplaceIt() async throws {
    let setup = try await Setup {
      $0.method == "MOVE" && $0.headers["Destination"]?.hasSuffix(".tmp") == true ? .init(403) : nil
    }
    defer { setup.peer.stop() }
    _ = try await setup.uploader(setup.holding(.timeout)).upload(setup.source, as: "a", overwrite: true)
    let error = await #expect(throws: UploadError.self) {
      _ = try await setup.uploader().upload(setup.newer, as: "a", overwrite: true)
    }
    #expect(error?.message.contains("may still arrive") == true, "\(error as Any)")
    #expect(setup.peer.contents(of: "a") == setup.source.bytes(count: 100))
    // The temporary file of the older version stays alone.
    #expect(setup.peer.unfinished() == 100, "\(setup.peer.requests)")
    await setup.journal.close()
  }

  /// The MOVE never arrives. Its temporary file is deleted once it cannot arrive any more.
  @Test func temporaryFileIsDeletedLater() async throws {
    let setup = try await Setup()
    defer { setup.peer.stop() }
    _ = try await setup.uploader(setup.holding(.timeout)).upload(setup.source, as: "a", overwrite: true)
    #expect(setup.peer.unfinished() == 100)
    var session = try #require(try await setup.leftover()?.session)
    #expect(await !setup.uploader().discard(session))
    let error = await #expect(throws: UploadError.self) {
      try await WebDAV().abort(session, setup.uploader().context())
    }
    #expect(error?.message.contains("in 60 minutes") == true, "\(error as Any)")
    #expect(setup.peer.unfinished() == 100, "\(setup.peer.requests)")
    let moves = try #require(session.state["moves"])
    let name = moves.prefix { $0 != "@" }
    session.state["moves"] = "\(name)@\(currentSeconds() - 3600)"
    #expect(await setup.uploader().discard(session))
    #expect(setup.peer.unfinished() == 0 && setup.peer.contents(of: "a")?.count == 100)
    await setup.journal.close()
  }

  /// A refused MOVE has ended, so its temporary file is deleted at once.
  @Test func refusedMoveLeavesNothing() async throws {
    let setup = try await Setup { $0.method == "MOVE" && $0.headers["Overwrite"] == "T" ? .init(400) : nil }
    defer { setup.peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      _ = try await setup.uploader().upload(setup.source, as: "a", overwrite: true)
    }
    #expect(error?.status == 400)
    #expect(setup.peer.contents(of: "a") == [1, 2, 3] && setup.peer.unfinished() == 0, "\(setup.peer.requests)")
    await setup.journal.close()
  }
}
