import BlobCrypto
import BlobTesting
import TestSupport
import Blobs
import Testing

/// Applications can implement sources, and these may return wrong values.
struct UntrueSourceTests {
  @Test(arguments: [-1, .min, 1, .max])
  func countThatCannotBeIsAnErrorThroughEveryWrapper(_ excess: Int) async throws {
    let liar = Liar { size in excess < 0 ? excess : size &+ excess }
    let key = try EncryptionKey([UInt8](repeating: 1, count: 32))
    let wrapped: [any BlobSource] = [
      CountingSource(liar, occurrencesOf: [1]), HashingSource(liar, .md5), ProgressSource(liar) { _ in },
      ThrottledSource(liar, RateLimiter(bytesPerSecond: 1 << 40)), ReopeningSource(liar), SlicedSource(liar),
      ConcatenatedSource([liar]), BufferedSource(liar), EncryptingSource(liar, key: key, name: "a"),
      DecryptingSource(liar, key: key, version: "a"), Spool(liar),
      SlicedSource(try SealedSource(liar, to: [sealKey.recipient]), start: 300),
      UnsealedSource(liar, with: [sealKey.identity]),
    ]
    for source in wrapped {
      let error = failure { () throws(BlobError) in
        let slice = BlobSlice(source)
        _ = try readNext(try slice.open(Cancellation()), 10)
      }
      #expect(error?.code == .io, "\(type(of: source))")
    }
    await #expect(throws: BlobError.self) { for try await _ in liar.buffers() {} }
  }

  @Test func negativeOffsetMeetsNoKeystream() throws {
    let key = try EncryptionKey([UInt8](repeating: 1, count: 32))
    let liar = Liar { $0 }
    for source: any BlobSource in [
      EncryptingSource(liar, key: key, name: "a"), DecryptingSource(liar, key: key, version: "a"),
      try SealedSource(liar, to: [sealKey.recipient]), UnsealedSource(liar, with: [sealKey.identity]),
    ] {
      for offset in [-1, .min] as [Int64] {
        #expect(failure { () throws(BlobError) in try source.open(at: offset, Cancellation()) }?.code == .outOfRange)
      }
    }
  }
}

/// For a buffer of some size, claims to have read the number of bytes that `count` computes from it.
private struct Liar: BlobSource {
  let count: @Sendable (Int) -> Int
  var access: BlobAccess { .random }
  static let info = BlobInfo(length: 1000, validator: Validator(version: "a"), preferredRead: 1)

  func info(_ cancel: Cancellation) -> BlobInfo { Self.info }
  func open(at offset: Int64, _ cancel: Cancellation) -> any BlobReader { Reader(count) }

  private final class Reader: BlobReader {
    private let count: @Sendable (Int) -> Int
    init(_ count: @escaping @Sendable (Int) -> Int) { self.count = count }
    var info: BlobInfo { Liar.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int { count(buffer.count) }
    func fileRegion() -> FileRegion? { nil }
    func finish() {}
  }
}
