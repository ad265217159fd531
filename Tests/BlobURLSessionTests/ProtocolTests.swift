import BlobTesting
import BlobURLSession
import Testing

/// Uploads of every dialect, with URLSession in libcurl's place.
struct ProtocolTests {
  // corelibs ends the process where a connection breaks inside an answer's head: "completed, but there's no response".
  #if canImport(FoundationNetworking)
    private static let checks = ProtocolCheck.calm
  #else
    private static let checks = ProtocolCheck.all
  #endif

  @Test(.timeLimit(.minutes(5)), arguments: ProtocolFixture.all, checks)
  func conforms(_ fixture: ProtocolFixture, _ check: ProtocolCheck) async throws {
    try await check.run(fixture, over: URLSessionTransport())
  }
}
