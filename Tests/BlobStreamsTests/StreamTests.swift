import BlobStreams
import BlobTesting
import Blobs
import Testing

struct StreamTests {
  @Test(arguments: SourceFixture.all, StreamCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }
}

extension SourceFixture {
  static let all = [0, 1, 9, 5000, 300_000].flatMap { length -> [SourceFixture] in
    let pattern = PatternSource(length: Int64(length), seed: 1)
    let bytes = pattern.bytes(count: length)
    return [
      SourceFixture("\(length) bytes in memory", like: bytes) { DataSource(bytes) },
      SourceFixture("a pattern of \(length), length unknown", like: bytes, knowsLength: false) {
        PatternSource(length: Int64(length), seed: 1, knowsLength: false)
      },
      SourceFixture("a slow pattern of \(length)", like: bytes) {
        PatternSource(length: Int64(length), seed: 1, preferredRead: 1)
      },
    ]
  }
}
