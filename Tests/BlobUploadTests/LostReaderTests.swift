import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

/// A gallery is unavailable for a moment: the reader is lost, and the item has not changed.
struct LostReaderTests {
  private let pattern = PatternSource(length: 3_000_000, seed: 4)

  private func upload(_ source: any BlobSource, _ uploadProtocol: String) async throws -> [UInt8]? {
    let server = try ServedFolder()
    let transport = SocketTransport()
    let destination = try await UploadDestination.discover(server.endpoint, named: uploadProtocol, over: transport)
    _ = try await Uploader(destination, transport: transport).upload(source, as: "film.mov")
    return server.contents(of: "film.mov")
  }

  @Test(arguments: ["put", "tus"]) func aLostReaderIsOpenedAgainAtTheSameByte(_ uploadProtocol: String) async throws {
    let counting = CountingSource(pattern)
    let arrived = try await upload(FaultySource(counting, .invalidate(at: 1_000_000, times: 2)), uploadProtocol)
    let isWhole = arrived == pattern.bytes(count: 3_000_000)
    #expect(isWhole)
    #expect(counting.count == 3_000_000, "no byte is read again")
  }

  /// More failures than `ReopeningSource` tries openings: the upload waits as for a destination that is unreachable.
  @Test(arguments: ["put", "tus", "resumable"]) func theUploadWaitsForASourceThatIsLostForLonger(
    _ uploadProtocol: String
  )
    async throws
  {
    let arrived = try await upload(FaultySource(pattern, .invalidate(at: 1_000_000, times: 9)), uploadProtocol)
    let isWhole = arrived == pattern.bytes(count: 3_000_000)
    #expect(isWhole)
  }

  @Test func theUploadGivesUpASourceThatStaysLost() async throws {
    let server = try ServedFolder()
    let transport = SocketTransport()
    let destination = try await UploadDestination.discover(server.endpoint, named: "tus", over: transport)
    let retry = RetryPolicy(first: .milliseconds(1), longest: .milliseconds(1), outage: .milliseconds(300))
    let source = FaultySource(pattern, .invalidate(at: 1_000_000, times: .max))
    let error = await #expect(throws: UploadError.self) {
      try await Uploader(destination, transport: transport, retry: retry).upload(source, as: "film.mov")
    }
    #expect(error?.side == .source && (error?.cause as? BlobError)?.code == .invalidated, "\(error as Any)")
    #expect(error?.message.contains("gave up after") == true)
  }

  @Test(arguments: ["put", "tus"]) func anotherVersionIsNotMixedIn(_ uploadProtocol: String) async throws {
    let other = PatternSource(length: 3_000_000, seed: 5)
    let source = FaultySource(pattern, .invalidate(at: 1_000_000, times: 1), .replaced(by: other, from: 2))
    let error = await #expect(throws: UploadError.self) { try await upload(source, uploadProtocol) }
    #expect(error?.side == .source && (error?.cause as? BlobError)?.code == .changed, "\(error as Any)")
  }
}
