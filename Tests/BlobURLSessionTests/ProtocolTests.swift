import BlobTesting
import TestSupport
import BlobURLSession
import Testing

/// Uploads by every protocol, with URLSession instead of libcurl.
struct ProtocolTests {
  @Test(.timeLimit(.minutes(5)), arguments: ProtocolFixture.all, ProtocolCheck.all)
  func conforms(_ fixture: ProtocolFixture, _ check: ProtocolCheck) async throws {
    try await check.run(fixture, over: URLSessionTransport())
  }
}
