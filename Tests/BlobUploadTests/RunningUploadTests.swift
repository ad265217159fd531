import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// An upload as one value: progress, result, cancellation.
@Suite struct RunningUploadTests {
  private static let length: Int64 = 3_000_000

  private func uploader(
    _ peer: ServedFolder, _ folder: ScratchFolder, bytesPerSecond: Int64? = nil
  ) async throws -> Uploader {
    var options = SocketTransport.Options()
    options.limiter = bytesPerSecond.map { RateLimiter(bytesPerSecond: $0) }
    let transport = SocketTransport(options)
    return Uploader(
      try await .discover(peer.endpoint, speaking: Tus(wholeUpTo: 0), over: transport), transport: transport,
      journal: try await Journal(at: folder.path.appending("journal")))
  }

  @Test(.timeLimit(.minutes(1))) func progressGrowsToTheLength() async throws {
    let (peer, folder) = (try ServedFolder(), try ScratchFolder())
    let uploader = try await uploader(peer, folder, bytesPerSecond: 3_000_000)
    let upload = uploader.start(PatternSource(length: Self.length), as: "film")
    var steps: [RunningUpload.Step] = []
    for await step in upload.progress { steps.append(step) }
    #expect(steps.count > 2)
    #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.sent <= $1.sent && $0 != $1 })
    #expect(steps.last == RunningUpload.Step(sent: Self.length, acknowledged: Self.length, resumed: 0))
    #expect(try await upload.result?.length == Self.length)
    // A later iteration has the last state only.
    var later: [RunningUpload.Step] = []
    for await step in upload.progress { later.append(step) }
    #expect(later == steps.suffix(1))
    await uploader.journal?.close()
  }

  /// The server refuses one file before it has stored any in this run. That is no answer to the others.
  @Test func theRefusalOfOneUploadIsNotThatOfAnother() async throws {
    let folder = try ScratchFolder()
    let script = Script { _, request throws(TransportError) in
      if request.url.text.hasSuffix("refused") { return .status(request.method == "HEAD" ? 404 : 403) }
      return request.method == "HEAD" ? .status(200, ["Content-Length": "1000"]) : .status(201)
    }
    func uploader() async throws -> Uploader {
      Uploader(
        UploadDestination(endpoint: host, uploadProtocol: PlainPut(), limits: PlainPut().limits), transport: script,
        journal: try await Journal(at: folder.path.appending("journal")))
    }
    let source = PatternSource(length: 1000)
    let first = try await uploader()
    #expect(try await first.upload(source, as: "sent before") != nil)
    await first.journal?.close()
    let second = try await uploader()
    let error = await #expect(throws: UploadError.self) { try await second.upload(source, as: "refused") }
    #expect(error?.status == 403)
    #expect(try await second.upload(source, as: "sent before") == nil)
    await second.journal?.close()
  }

  @Test(.timeLimit(.minutes(1))) func aCancelledUploadContinuesAtItsOffset() async throws {
    let (peer, folder) = (try ServedFolder(), try ScratchFolder())
    let source = PatternSource(length: Self.length)
    let slow = try await uploader(peer, folder, bytesPerSecond: 1_000_000)
    let upload = slow.start(source, as: "film")
    for await step in upload.progress where step.sent > 1_000_000 { upload.cancel() }
    let error = await #expect(throws: UploadError.self) { try await upload.result }
    #expect(error?.side == .cancelled)
    await slow.journal?.close()
    let quick = try await uploader(peer, folder)
    let again = quick.start(source, as: "film")
    #expect(try await again.result?.length == Self.length)
    var last: RunningUpload.Step?
    for await step in again.progress { last = step }
    #expect(last?.resumed ?? 0 > 500_000)
    #expect(peer.contents(of: "film") == source.bytes(at: 0, count: Int(Self.length)))
    await quick.journal?.close()
  }

  /// An upload that sends nothing, and one that fails, end their progress too.
  @Test(.timeLimit(.minutes(1))) func progressEndsWithTheUpload() async throws {
    let (peer, folder) = (try ServedFolder(), try ScratchFolder())
    var uploader = try await uploader(peer, folder)
    uploader.retry = RetryPolicy(retries: 0)
    let source = PatternSource(length: 1000)
    #expect(try await uploader.start(source, as: "photo").result != nil)
    let again = uploader.start(source, as: "photo")
    for await step in again.progress { Issue.record("\(step): nothing is sent") }
    #expect(try await again.result == nil)
    peer.stop()
    let failing = uploader.start(PatternSource(length: 2000), as: "other")
    for await _ in failing.progress {}
    await #expect(throws: UploadError.self) { try await failing.result }
    await uploader.journal?.close()
  }

  @Test(.timeLimit(.minutes(1))) func theUploadContinuesIfNobodyIteratesOverItsProgress() async throws {
    let (peer, folder) = (try ServedFolder(), try ScratchFolder())
    let uploader = try await uploader(peer, folder, bytesPerSecond: 3_000_000)
    let upload = uploader.start(PatternSource(length: Self.length), as: "film")
    let watching = Task { for await _ in upload.progress {} }
    watching.cancel()
    await watching.value
    #expect(try await upload.result?.length == Self.length)
    await uploader.journal?.close()
  }
}
