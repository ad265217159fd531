import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

// When a file is sent in parts.
extension PartsTests {
  /// A part has no name, so the name is queried first.
  @Test func aTakenNameIsRefusedBeforeTheFirstByte() async throws {
    let bench = try await Bench()
    _ = try await bench.uploader.upload(PatternSource(length: 1000, seed: 7), as: "video")
    let before = bench.sent
    let error = await #expect(throws: UploadError.self) { try await bench.upload(pattern) }
    #expect(error?.status == 409 && bench.sent == before)
  }

  /// Only servers with a latency over ten milliseconds get parts; a number that the user chose takes precedence.
  @Test func onlyADistantServerGetsParts() async throws {
    let far = try await Bench(distance: .milliseconds(12))
    far.state.withLock { $0.partsAtOnce = nil }
    try await far.upload(pattern)
    #expect(far.concats.count { $0 == "partial" } == 5)
    let single = try await Bench(distance: .milliseconds(12))
    single.state.withLock { $0.partsAtOnce = 1 }
    try await single.upload(pattern)
    #expect(single.concats.isEmpty)
    let small = try await Bench(distance: .milliseconds(12))
    try await small.upload(PatternSource(length: 15 << 20))
    #expect(small.concats.isEmpty)
  }
}
