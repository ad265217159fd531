import BlobTesting
import Testing

/// Every source is a good stream, too.
struct SourceStreamTests {
  @Test(arguments: SourceFixture.all, StreamCheck.all)
  func streams(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }
}
