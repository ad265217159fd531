import BlobTesting
import TestSupport
import Blobs
import Testing

struct BufferedSourceTests {
  private let pattern = PatternSource(length: 1_000_000, preferredRead: 1)

  @Test func sourceIsReadInBlocksHoweverSmallTheReads() throws {
    let faulty = FaultySource(pattern)
    #expect(try BufferedSource(faulty).readAll(upTo: 100) == pattern.bytes(count: 1_000_000))
    #expect(faulty.smallestRead == 128 << 10)
    #expect(faulty.reads == 9, "eight blocks and the end")
  }

  @Test func largerPreferenceMakesLargerBlocks() throws {
    let faulty = FaultySource(PatternSource(length: 1_000_000, preferredRead: 300_000))
    _ = try BufferedSource(faulty).readAll()
    #expect(faulty.smallestRead == 300_000)
  }

  @Test func readOfABlockOrMoreGoesStraightThrough() throws {
    let faulty = FaultySource(pattern)
    let reader = try BufferedSource(faulty, block: 1000).openBuffered(at: 0, Cancellation())
    _ = try readNext(reader, 1000)
    #expect(reader.lent.isEmpty)
    _ = try readNext(reader, 10)
    #expect(reader.lent.count == 990)
    // The buffered bytes come first, and the rest is read directly.
    #expect(try readNext(reader, 5000) == pattern.bytes(at: 1010, count: 5000))
    #expect(reader.lent.isEmpty)
    #expect(faulty.smallestRead == 1000)
  }

  @Test func nothingIsBufferedWhereThatGainsNothing() throws {
    let faulty = FaultySource(PatternSource(length: 1000))
    let reader = try BufferedSource(faulty).openBuffered(at: 0, Cancellation())
    #expect(try readNext(reader, 7).count == 7)
    #expect(reader.lent.isEmpty)
    #expect(faulty.smallestRead == 7)
    #expect(try BufferedSource(pattern).info().preferredRead == 0)
  }

  @Test func blockThatIsLentHoldsWhatReadGivesNext() throws {
    let reader = try BufferedSource(pattern, block: 1000).openBuffered(at: 5, Cancellation())
    #expect(reader.lent.isEmpty)
    _ = try readNext(reader, 10)
    let lent = Array(reader.lent)
    #expect(reader.offset == 15, "lending moves nothing")
    #expect(lent == pattern.bytes(at: 15, count: 990))
    #expect(try readNext(reader, 990) == lent)
  }

  @Test func seekInsideTheBlockCostsNothing() throws {
    let faulty = FaultySource(pattern)
    let reader = try BufferedSource(faulty, block: 1000).openBuffered(at: 100, Cancellation())
    _ = try readNext(reader, 10)
    for offset in [100, 500, 1099, 1100, 103] as [Int64] {
      try reader.seek(to: offset)
      #expect(reader.offset == offset)
      if offset < 1100 { #expect(try readNext(reader, 1) == [pattern.byte(at: offset)]) }
    }
    #expect(faulty.reads == 1 && faulty.openings == 1)
    try reader.seek(to: 1100)
    #expect(try readNext(reader, 3) == pattern.bytes(at: 1100, count: 3))
    #expect(faulty.reads == 2 && faulty.openings == 1)
  }

  @Test func seekElsewhereOpensAgain() throws {
    let faulty = FaultySource(pattern, .replaced(by: PatternSource(length: 1_000_000, seed: 1), from: 4))
    let reader = try BufferedSource(faulty, block: 1000).openBuffered(at: 0, Cancellation())
    _ = try readNext(reader, 10)
    for offset in [900_000, 50] as [Int64] {
      try reader.seek(to: offset)
      #expect(try readNext(reader, 5) == pattern.bytes(at: offset, count: 5))
    }
    #expect(failure { () throws(BlobError) in try reader.seek(to: 500_000) }?.code == .changed)
    #expect(try readNext(reader, 5) == pattern.bytes(at: 55, count: 5), "it stays where it was")
    #expect(failure { () throws(BlobError) in try reader.seek(to: 2_000_000) }?.code == .outOfRange)
  }

  @Test func regionBeginsAtTheNextByteNotTheNextBlock() throws {
    let file = try TemporaryFile(pattern.bytes(count: 5000))
    struct Slow: BlobSource {
      let source: FileSource
      var access: BlobAccess { .random }
      func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
      func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
        Reader(try source.open(at: offset, cancel))
      }
      final class Reader: BlobReader {
        let reader: any BlobReader
        init(_ reader: any BlobReader) { self.reader = reader }
        var info: BlobInfo { BlobInfo(length: reader.info.length, preferredRead: 1) }
        func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
        func fileRegion() -> FileRegion? { reader.fileRegion() }
        func finish() throws(BlobError) { try reader.finish() }
      }
    }
    let reader = try BufferedSource(Slow(source: file.source), block: 1000).open(at: 100, Cancellation())
    _ = try readNext(reader, 7)
    #expect(reader.fileRegion()?.offset == 107)
  }
}
