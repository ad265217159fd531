import BlobTesting
import Testing

/// Tests every source as an input stream.
struct SourceStreamTests {
  @Test(arguments: SourceFixture.all, StreamCheck.all)
  func streams(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }
}
