import BlobTesting
import TestSupport
import Blobs
import Testing

struct SlicedSourceTests {
  private let pattern = PatternSource(length: 1000, seed: 3)

  @Test func rangesOfOneVersionHaveTheirOwnNames() throws {
    let names = try [(0, nil), (0, 1000), (0, 10), (10, 10), (10, nil)].map { start, length in
      try #require(SlicedSource(pattern, start: start, length: length).info().validator?.version)
    }
    #expect(Set(names).count == names.count)
  }

  @Test func noOffsetLeadsOutOfTheRange() throws {
    let slice = SlicedSource(pattern, start: 100, length: 50)
    for offset in [-1, 51, .min, .max] as [Int64] {
      #expect(failure { () throws(BlobError) in try slice.open(at: offset, Cancellation()) }?.code == .outOfRange)
    }
    let rest = SlicedSource(pattern, start: 100)
    #expect(try rest.readAll(at: 900) == [])
    for offset in [-1, 901, .min, .max, .max - 99] as [Int64] {
      #expect(failure { () throws(BlobError) in try rest.open(at: offset, Cancellation()) }?.code == .outOfRange)
    }
  }

  @Test func rangeThatIsNotThereIsAnError() throws {
    let beyond = SlicedSource(pattern, start: 1001)
    #expect(failure { () throws(BlobError) in try beyond.info() }?.code == .outOfRange)
    #expect(failure { () throws(BlobError) in try beyond.readAll() }?.code == .outOfRange)
    let long = SlicedSource(pattern, start: 990, length: 20)
    #expect(failure { () throws(BlobError) in try long.readAll() }?.code == .truncated)
  }

  @Test func anotherVersionIsRefused() throws {
    let slice = SlicedSource(pattern, start: 1, validator: Validator(version: "other"))
    #expect(failure { () throws(BlobError) in try slice.info() }?.code == .changed)
    #expect(failure { () throws(BlobError) in try slice.readAll() }?.code == .changed)
  }

  @Test func sliceOfASliceIsASlice() throws {
    let slice = SlicedSource(SlicedSource(pattern, start: 100, length: 500), start: 50, length: 100)
    #expect(try slice.readAll() == pattern.bytes(at: 150, count: 100))
    #expect(try slice.readAll(at: 99) == pattern.bytes(at: 249, count: 1))
  }
}
