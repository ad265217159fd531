import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// The temporary files of earlier tries are deleted, or stay in the journal.
@Suite struct WebDAVLeftoverTests {
  private let source = PatternSource(length: 100)

  private func uploader(
    _ peer: DavPeer, _ journal: Journal? = nil, retries: Int = 3, _ transport: any Transport = SocketTransport()
  ) -> Uploader {
    let uploadProtocol = WebDAV()
    var uploader = Uploader(
      UploadDestination(
        endpoint: peer.endpoint, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits(at: peer.endpoint)),
      transport: transport, journal: journal, retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    return uploader
  }

  /// A transport that loses the response to the first PUT, so that the first try leaves a temporary file.
  private func losingFirstPut(
    _ fault: @escaping @Sendable (Int, HTTPRequest) -> FaultyTransport.Fault = { _, _ in .none }
  ) -> FaultyTransport {
    let isFirst = first(1, "PUT")
    return FaultyTransport(SocketTransport()) { number, request in
      isFirst(request.method) ? .loseAnswer : fault(number, request)
    }
  }

  /// Whether a request is one of the first `count` with this method. Each call with that method counts one.
  private func first(_ count: Int, _ method: String) -> @Sendable (String) -> Bool {
    let left = Monitor(count)
    return { asked in
      asked == method
        && left.update { left in
          left -= 1
          return left >= 0
        }
    }
  }

  /// A server that responds `status` to the first `count` deletions.
  private func peer(refusing count: Int, with status: Int) -> DavPeer {
    let isFirst = first(count, "DELETE")
    return DavPeer { request in isFirst(request.method) ? HTTPPeer.Reply(status) : nil }
  }

  @Test(arguments: [100, 5 << 20] as [Int64])
  func aDeletionThatFailsInPassingIsTriedAgain(_ length: Int64) async throws {
    let source = PatternSource(length: length)
    let peer = peer(refusing: 3, with: 423)
    defer { peer.stop() }
    let told = Monitor<[String]>([])
    var uploader = uploader(peer, retries: 5, losingFirstPut())
    uploader.notice = { text in told.update { $0.append(text) } }
    _ = try await uploader.upload(source, as: "a")
    #expect(peer.names() == ["a"] && peer.unfinished() == 0, "\(peer.requests)")
    #expect(told.update { $0 } == [])
    #expect(peer.requests.count { $0.hasPrefix("PUT") } == 2, "\(peer.requests)")
  }

  /// The server takes the bytes, and refuses the file's name for good.
  @Test(arguments: [100, 5 << 20] as [Int64])
  func aRefusedFileLeavesNothingThoughADeletionFails(_ length: Int64) async throws {
    let isFirst = first(2, "DELETE")
    let peer = DavPeer { request in
      request.method == "MOVE" ? HTTPPeer.Reply(400) : isFirst(request.method) ? HTTPPeer.Reply(423) : nil
    }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer, retries: 5).upload(PatternSource(length: length), as: "a")
    }
    #expect(error?.status == 400)
    #expect(peer.names() == [] && peer.unfinished() == 0, "\(peer.requests)")
  }

  /// The server never gives the file its name: Nextcloud answers 503 for names that end in `.part`.
  @Test(arguments: [100, 5 << 20] as [Int64])
  func anUploadWithoutTriesLeftLeavesNothing(_ length: Int64) async throws {
    let peer = DavPeer { request in request.method == "MOVE" ? HTTPPeer.Reply(503) : nil }
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer, journal).upload(PatternSource(length: length), as: "a")
    }
    #expect(error?.status == 503)
    #expect(peer.names() == [] && peer.unfinished() == 0, "\(peer.requests)")
    #expect(try await journal.unfinished().count == 1, "the next push tries it again")
    await journal.close()
  }

  @Test(arguments: [100, 5 << 20] as [Int64])
  func aPushThatWasInterruptedAtTheDeletionDeletesWhenItIsRunAgain(_ length: Int64) async throws {
    let source = PatternSource(length: length)
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let cut = uploader(
      peer, journal, losingFirstPut { _, request in request.method == "DELETE" ? .before(.cancelled) : .none })
    let error = await #expect(throws: UploadError.self) { _ = try await cut.upload(source, as: "a") }
    #expect(error?.side == .cancelled)
    #expect(peer.names() == ["a"] && peer.unfinished() == length)
    let left = try #require(try await journal.unfinished().first)
    #expect(left.isStored)
    let before = peer.requests.count
    _ = try await uploader(peer, journal).upload(source, as: "a")
    #expect(peer.unfinished() == 0 && peer.names() == ["a"], "\(peer.requests)")
    #expect(try await journal.unfinished().isEmpty)
    // No bytes are sent or read back again.
    let again = peer.requests.dropFirst(before).map { $0.prefix { $0 != " " } }
    #expect(Set(again) == ["HEAD", "DELETE"], "\(again)")
    await journal.close()
  }

  @Test func aFileThatIsGoneMeanwhileIsSentAgain() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let cut = uploader(
      peer, journal, losingFirstPut { _, request in request.method == "DELETE" ? .before(.cancelled) : .none })
    await #expect(throws: UploadError.self) { _ = try await cut.upload(source, as: "a") }
    _ = try await SocketTransport().send(HTTPRequest("DELETE", peer.endpoint.resolve("a")!), body: nil, Exchange())
    _ = try await uploader(peer, journal).upload(source, as: "a")
    #expect(peer.contents(of: "a") == source.bytes(count: 100) && peer.unfinished() == 0, "\(peer.requests)")
    await journal.close()
  }

  /// The server refuses the method, also for names that never existed.
  @Test func aFileThatIsNotThereIsNotSaidToStay() async throws {
    let peer = DavPeer { $0.method == "DELETE" ? .init(405) : nil }
    defer { peer.stop() }
    let told = Monitor<[String]>([])
    let isFirst = first(1, "PUT")
    let transport = FaultyTransport(SocketTransport()) { _, request in
      isFirst(request.method) ? .before(.broken) : .none
    }
    var uploader = uploader(peer, retries: 3, transport)
    uploader.notice = { text in told.update { $0.append(text) } }
    _ = try await uploader.upload(source, as: "a")
    #expect(told.update { $0 } == [] && peer.unfinished() == 0, "\(peer.requests)")
  }

  /// The file was changed after an interrupted push, and the temporary file of that push cannot be deleted at once.
  @Test func anUploadThatReplacesAnotherDeletesWhatThatHasLeft() async throws {
    let peer = peer(refusing: 2, with: 503)
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let cut = uploader(
      peer, journal, retries: 0,
      FaultyTransport(SocketTransport()) { _, request in request.method == "PUT" ? .loseAnswer : .none })
    await #expect(throws: UploadError.self) { _ = try await cut.upload(source, as: "a") }
    #expect(peer.unfinished() == 100)
    _ = try await uploader(peer, journal).upload(PatternSource(length: 200, seed: 4), as: "a")
    #expect(peer.names() == ["a"] && peer.unfinished() == 0, "\(peer.requests)")
    await journal.close()
  }

  /// Sends a source whose every PUT fails, to a server that deletes no files. Returns the number of bytes left there.
  /// The journal contains all temporary names, so they are deleted later.
  private func bytesLeft(of source: any BlobSource, retries: Int, _ spool: SpoolOptions) async throws -> Int64 {
    let isShut = Monitor(true)
    let peer = DavPeer { request in
      request.method == "DELETE" && isShut.update { $0 } ? HTTPPeer.Reply(503) : nil
    }
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    var cut = uploader(
      peer, journal, retries: retries,
      FaultyTransport(SocketTransport()) { _, request in request.method == "PUT" ? .loseAnswer : .none })
    cut.spool = spool
    await #expect(throws: UploadError.self) { _ = try await cut.upload(source, as: "a") }
    let left = peer.unfinished()
    isShut.update { $0 = false }
    let session = try #require(try await journal.unfinished().first?.session)
    #expect(await uploader(peer, journal).discard(session))
    #expect(peer.unfinished() == 0, "\(peer.requests)")
    await journal.close()
    return left
  }

  /// One of thirty tries tests with an empty file whether the server implements conditions.
  @Test func everyNameStaysKnownWhereNoneCanBeDeleted() async throws {
    #expect(try await bytesLeft(of: source, retries: 29, SpoolOptions()) == 2900)
  }

  @Test func theTemporaryFileOfAPipeStaysKnown() async throws {
    let pipe = piped(PatternSource(length: 100_000))
    #expect(try await bytesLeft(of: pipe, retries: 1, SpoolOptions(memory: 40_000)) > 0)
  }
}
