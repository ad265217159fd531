import BlobTesting
import TestSupport
import BlobURLSession
import Testing

/// Uploads of every dialect, with URLSession in libcurl's place.
struct ProtocolTests {
  @Test(.timeLimit(.minutes(5)), arguments: ProtocolFixture.all, ProtocolCheck.all)
  func conforms(_ fixture: ProtocolFixture, _ check: ProtocolCheck) async throws {
    try await check.run(fixture, over: URLSessionTransport())
  }
}
