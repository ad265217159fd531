import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests sources at URLs whose server reports no version: an interrupted download cannot be resumed.
@Suite struct CutDownloadTests {
  /// A server that returns another version for each request, with other bytes and another length, without saying so.
  private func server(_ lengths: [Int]) -> HTTPPeer {
    let count = Atomic(0)
    return HTTPPeer { _ in
      let number = count.add(1, ordering: .relaxed).oldValue
      let length = lengths[min(number, lengths.count - 1)]
      return .init(200, [:], PatternSource(length: Int64(length), seed: UInt64(number)).bytes(count: length))
    }
  }

  private func push(
    from proxy: ChaosProxy, to served: ServedFolder, _ uploadProtocol: String, retries: Int = 8
  ) async throws -> Outcomes {
    let desk = try await Desk()
    let destination = try await UploadDestination.discover(
      served.endpoint, named: uploadProtocol, over: SocketTransport())
    var uploader = Uploader(
      destination, transport: SocketTransport(), journal: desk.journal, retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    let source = HTTPRangeSource(HTTPURL("http://127.0.0.1:\(proxy.port)/film.mov")!, over: SocketTransport())
    let info = try await readingSource { cancel, _ throws(BlobError) in try source.info(cancel) }
    let item = UploadItem(
      source: source, info: info, identity: "http://media.example/film.mov",
      target: destination.target("film.mov", length: info.length))
    let id = try await desk.journal.destinationID(
      JournalDestination(endpoint: destination.endpoint.text, protocolName: uploadProtocol))
    let left = Mutex<[UploadItem]?>([item])
    let outcomes = Outcomes()
    try await UploadQueue(uploader, journal: desk.journal, destinationID: id).run(
      { left.withLock { $0.take() } }, outcomes)
    return outcomes
  }

  /// The download of the first version is interrupted, and the second arrives without any byte of the first.
  @Test(arguments: ["put", "tus", "resumable"]) func aDownloadThatIsCutBeginsAnew(_ uploadProtocol: String) async throws
  {
    let server = server([3_000_000, 2_000_000])
    defer { server.stop() }
    let proxy = ChaosProxy(to: server.port, .init([.cutDown(after: 1_500_000)]))
    let served = try ServedFolder()
    let outcomes = try await push(from: proxy, to: served, uploadProtocol)
    #expect(outcomes.sent == 1, "\(String(describing: outcomes.error("film.mov")))")
    #expect(served.contents(of: "film.mov") == PatternSource(length: 2_000_000, seed: 1).bytes(count: 2_000_000))
    #expect(server.requests.count == 2)
  }

  @Test func aDownloadThatIsAlwaysCutEndsWithAdvice() async throws {
    let server = server([3_000_000])
    defer { server.stop() }
    let proxy = ChaosProxy(to: server.port, .init(Array(repeating: .cutDown(after: 1_500_000), count: 9)))
    let served = try ServedFolder()
    let error = try await push(from: proxy, to: served, "put", retries: 2).error("film.mov")
    #expect(server.requests.count == 3)
    #expect(error?.message.contains("download the file to a disk, and use it from there") == true, "\(error as Any)")
    #expect(served.names().isEmpty)
  }
}
