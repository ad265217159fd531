import BlobCrypto
import BlobTesting
import Blobs
import Testing

struct HashingSourceTests {
  private let pattern = PatternSource(length: 10_000)
  private var expected: [UInt8] { Digest.value(of: pattern.bytes(count: 10_000), .sha256) }

  @Test func digestIsThereOnceAllWasRead() throws {
    let source = HashingSource(pattern, .sha256)
    let reader = try source.open(at: 0, Cancellation())
    _ = try readNext(reader, 9999)
    #expect(source.value == nil)
    _ = try readNext(reader, 1)
    #expect(source.value == expected)
  }

  @Test func digestOfNothingIsADigest() throws {
    for knowsLength in [true, false] {
      let source = HashingSource(PatternSource(length: 0, knowsLength: knowsLength), .sha256)
      #expect(source.value == nil)
      #expect(try source.readAll() == [])
      #expect(source.value == Digest.value(of: [], .sha256))
    }
  }

  @Test func unknownLengthWaitsForTheEnd() throws {
    let source = HashingSource(PatternSource(length: 10_000, knowsLength: false), .sha256)
    let reader = try source.open(at: 0, Cancellation())
    _ = try readNext(reader, 10_000)
    #expect(source.value == nil)
    _ = try readNext(reader, 1)
    #expect(source.value == expected)
  }

  @Test func partsOneAfterAnotherGiveOneDigest() throws {
    let source = HashingSource(pattern, .sha256)
    for start in stride(from: Int64(0), to: 10_000, by: 3000) {
      _ = try BlobSlice(source, start: start, length: min(3000, 10_000 - start)).readAll(upTo: 700)
    }
    #expect(source.value == expected)
  }

  @Test func partsReadAgainCountOnce() throws {
    let source = HashingSource(pattern, .sha256)
    _ = try BlobSlice(source, start: 0, length: 4000).readAll()
    _ = try BlobSlice(source, start: 1000, length: 2000).readAll()
    _ = try BlobSlice(source, start: 3000, length: 7000).readAll()
    #expect(source.value == expected)
  }

  @Test func openingAtTheStartBeginsAgain() throws {
    let source = HashingSource(pattern, .sha256)
    let old = try source.open(at: 0, Cancellation())
    _ = try readNext(old, 5000)
    let new = try source.open(at: 0, Cancellation())
    _ = try readNext(old, 5000)
    #expect(source.value == nil, "a reader of an earlier pass adds nothing")
    _ = try readNext(new, 10_000)
    #expect(source.value == expected)
    _ = try source.open(at: 0, Cancellation())
    #expect(source.value == nil)
  }

  @Test func gapGivesNoDigest() throws {
    let source = HashingSource(pattern, .sha256)
    _ = try source.readAll(at: 1)
    #expect(source.value == nil)
    _ = try BlobSlice(source, start: 0, length: 4000).readAll()
    _ = try source.readAll(at: 4001)
    #expect(source.value == nil)
    _ = try source.readAll(at: 4000)
    #expect(source.value == expected)
  }

  @Test func twoVersionsGiveNoDigest() throws {
    let source = HashingSource(
      FaultySource(pattern, .replaced(by: PatternSource(length: 10_000, seed: 1), from: 2)), .sha256)
    _ = try BlobSlice(source, start: 0, length: 4000).readAll()
    _ = try source.readAll(at: 4000)
    #expect(source.value == nil)
  }

  @Test func pipeInPartsHasADigest() throws {
    let source = HashingSource(pipe(pattern), .sha256)
    _ = try BlobSlice(source, start: 0, length: 4000).readAll()
    #expect(try source.readAll(at: 4000).count == 6000)
    #expect(source.value == expected)
  }
}
