import BlobTesting
import TestSupport
import Blobs
import Testing

struct BlobPartsTests {
  private func lengths(_ length: Int64, in count: Int) throws -> [Int64?] {
    try BlobParts(PatternSource(length: length), count: count, Cancellation()).map(\.slice.length)
  }

  private func lengths(_ length: Int64, of size: Int64) throws -> [Int64?] {
    try BlobParts(PatternSource(length: length), size: size, Cancellation()).map(\.slice.length)
  }

  @Test func lastPartTakesTheRest() throws {
    #expect(
      try lengths(3_000_000_000, in: 13) == Array(repeating: 230_769_230, count: 12) + [230_769_240])
    #expect(try lengths(10, in: 1) == [10])
    #expect(try lengths(10, in: 3) == [3, 3, 4])
    #expect(try lengths(10, in: 10) == Array(repeating: 1, count: 10))
    #expect(try lengths(11, in: 10) == Array(repeating: 1, count: 9) + [2])
  }

  @Test func noPartIsEmptyButTheOnlyOneOfNothing() throws {
    #expect(try lengths(3, in: 5) == [1, 1, 1])
    #expect(try lengths(3, in: .max) == [1, 1, 1])
    #expect(try lengths(0, in: 1) == [0])
    #expect(try lengths(0, in: 7) == [0])
    #expect(try lengths(0, of: 7) == [0])
  }

  @Test func partsOfASizeEndWithASmallerOne() throws {
    #expect(try lengths(10, of: 4) == [4, 4, 2])
    #expect(try lengths(8, of: 4) == [4, 4])
    #expect(try lengths(3, of: 4) == [3])
    #expect(try lengths(3, of: .max) == [3])
    let vast = try BlobParts(PatternSource(length: .max), size: 1, Cancellation())
    #expect(vast.count == .max)
    #expect(vast.last?.slice.start == Int64.max - 1)
  }

  @Test func partsOpenedInAnyOrderAreTheWhole() throws {
    let pattern = PatternSource(length: 10_007, seed: 8)
    for count in [1, 2, 13, 100] {
      let parts = try BlobParts(pattern, count: count, Cancellation())
      var whole: [Int: [UInt8]] = [:]
      for index in parts.indices.shuffled() { whole[index] = try parts[index].readAll(upTo: 100) }
      #expect(parts.indices.flatMap { whole[$0]! } == pattern.bytes(count: 10_007))
    }
  }

  @Test func partsAreOfOneVersion() throws {
    let source = FaultySource(
      PatternSource(length: 100), .replaced(by: PatternSource(length: 100, seed: 1), from: 2))
    let parts = try BlobParts(source, count: 2, Cancellation())
    #expect(try parts[0].readAll().count == 50)
    #expect(failure { () throws(BlobError) in try parts[1].readAll() }?.code == .changed)
  }

  @Test func sourceOfUnknownLengthCannotBeSplit() {
    let source = PatternSource(length: 10, knowsLength: false)
    let byCount = failure { () throws(BlobError) in try BlobParts(source, count: 2, Cancellation()) }
    let bySize = failure { () throws(BlobError) in try BlobParts(source, size: 2, Cancellation()) }
    #expect(byCount?.code == .unsupported && bySize?.code == .unsupported)
  }
}
