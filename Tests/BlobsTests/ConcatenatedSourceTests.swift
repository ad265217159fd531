import BlobTesting
import TestSupport
import Blobs
import Testing

struct ConcatenatedSourceTests {
  @Test func nothingInARowIsEmpty() throws {
    let source = ConcatenatedSource([])
    #expect(try source.info().length == 0)
    #expect(try source.readAll() == [])
    #expect(failure { () throws(BlobError) in try source.readAll(at: 1) }?.code == .outOfRange)
  }

  @Test func factsAreThoseOfAllPieces() throws {
    let known = PatternSource(length: 10, preferredRead: 5)
    let unknown = PatternSource(length: 10, knowsLength: false)
    let pipe = PipeSource(BlobPipe())
    #expect(try ConcatenatedSource([known, known]).info().length == 20)
    #expect(try ConcatenatedSource([known, unknown]).info().length == nil)
    #expect(try ConcatenatedSource([unknown, known]).info().preferredRead == 5)
    #expect(try ConcatenatedSource([known, PatternSource(length: .max)]).info().length == nil, "too long to count")
    #expect(try ConcatenatedSource([known, pipe]).info().validator == nil)
    #expect(ConcatenatedSource([known, pipe]).access == .sequential)
    #expect(ConcatenatedSource([known, unknown]).access == .random)
  }

  @Test func theValidatorDependsOnEveryPieceAndTheirOrder() throws {
    func validator(_ texts: String...) throws -> Validator? {
      try ConcatenatedSource(texts.map { DataSource($0) }).info().validator
    }
    let all = try [
      validator("a", "b"), validator("b", "a"), validator("a"), validator("ab"), validator("a", "b", ""), validator(),
    ]
    #expect(Set(all).count == all.count)
    #expect(try validator("a", "b") == all[0])
    let file = try TemporaryFile([1])
    let before = try #require(try ConcatenatedSource([file.source]).info().validator)
    try file.setModified(FileStamp.now - 30_000_000_000)
    #expect(try ConcatenatedSource([file.source]).info().validator?.match(with: before) == .different)
  }

  @Test func pieceThatEndsEarlyIsTruncated() {
    let short = FaultySource(PatternSource(length: 100), .truncate(at: 60))
    let source = ConcatenatedSource([DataSource("head"), short, DataSource("tail")])
    #expect(failure { () throws(BlobError) in try source.readAll() }?.code == .truncated)
  }

  @Test func pieceThatChangesIsChanged() throws {
    let file = try TemporaryFile(PatternSource(length: 1000).bytes(count: 1000))
    let source = ConcatenatedSource([DataSource("head"), file.source, DataSource("tail")])
    // Before the second source is reached, and while it is read.
    for read in [2, 500] {
      let reader = try source.open(at: 0, Cancellation())
      _ = try readNext(reader, read)
      try file.overwrite([UInt8(read & 0xFF)])
      #expect(failure { () throws(BlobError) in try readAll(reader) }?.code == .changed)
    }
  }
}
