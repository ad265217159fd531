import BlobTesting
import TestSupport
import Blobs
import Testing

struct BlobSliceTests {
  private let pattern = PatternSource(length: 1000)

  @Test func infoIsThatOfTheRange() throws {
    let source = PatternSource(length: 1000, preferredRead: 7)
    func info(_ start: Int64, _ length: Int64?) throws -> BlobInfo {
      try BlobSlice(source, start: start, length: length).open(Cancellation()).info
    }
    #expect(try info(100, 50) == BlobInfo(length: 50, validator: source.info.validator, preferredRead: 7))
    #expect(try info(100, nil).length == 900)
    #expect(try info(1000, nil).length == 0)
    let unknown = PatternSource(length: 1000, knowsLength: false)
    #expect(try BlobSlice(unknown, start: 10).open(Cancellation()).info.length == nil)
  }

  @Test(arguments: [nil, 100, 1000] as [Int64?])
  func sourceThatEndsEarlyIsTruncated(_ length: Int64?) {
    let source = FaultySource(pattern, .truncate(at: 99))
    let error = failure { () throws(BlobError) in try BlobSlice(source, length: length).readAll() }
    #expect(error?.code == .truncated)
    #expect(error?.message == "the source ended at byte 99 of \(length ?? 1000)")
  }

  @Test func rangePastTheEndIsTruncatedOrOutOfRange() {
    func code(_ start: Int64, _ length: Int64?) -> BlobError.Code? {
      failure { () throws(BlobError) in try BlobSlice(pattern, start: start, length: length).readAll() }?.code
    }
    #expect(code(999, 2) == .truncated)
    #expect(code(1000, 1) == .truncated)
    #expect(code(1000, nil) == nil)
    #expect(code(1001, nil) == .outOfRange)
    #expect(code(1, .max - 1) == .truncated)
  }

  /// The offset lies past the end of the present version, but the version is the reason.
  @Test func aShorterNewVersionHasChanged() {
    let now = PatternSource(length: 100)
    let slice = BlobSlice(now, start: 500, length: 10, validator: pattern.info.validator)
    let error = failure { () throws(BlobError) in try slice.readAll() }
    #expect(error?.code == .changed)
    let same = BlobSlice(now, start: 500, validator: now.info.validator)
    #expect(failure { () throws(BlobError) in try same.readAll() }?.code == .outOfRange)
  }

  @Test func changeIsFoundBeforeTheLastByteIsHandedOver() throws {
    for length in [1000, nil] as [Int64?] {
      let reader = try BlobSlice(FaultySource(pattern, .changedAtEnd), length: length).open(Cancellation())
      #expect(try readNext(reader, 999).count == 999)
      #expect(failure { () throws(BlobError) in try readNext(reader, 1) }?.code == .changed)
    }
  }

  @Test func unknownEndIsAskedForChangesToo() throws {
    let source = FaultySource(PatternSource(length: 10, knowsLength: false), .changedAtEnd)
    #expect(failure { () throws(BlobError) in try BlobSlice(source).readAll() }?.code == .changed)
  }

  @Test func sourceThatGivesMoreThanItsLengthIsChanged() {
    struct Liar: BlobSource {
      let pattern = PatternSource(length: 20)
      var access: BlobAccess { .random }
      var info: BlobInfo { BlobInfo(length: 10) }
      func info(_ cancel: Cancellation) -> BlobInfo { info }
      func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
        Reader(reader: try pattern.open(at: offset, cancel), info: info)
      }
      final class Reader: BlobReader {
        let reader: any BlobReader
        let info: BlobInfo
        init(reader: any BlobReader, info: BlobInfo) {
          self.reader = reader
          self.info = info
        }
        func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
        func fileRegion() -> FileRegion? { nil }
        func finish() {}
      }
    }
    let error = failure { () throws(BlobError) in try BlobSlice(Liar()).readAll() }
    #expect(error?.code == .changed)
    #expect(error?.message == "the source goes on after its 10 bytes")
  }

  @Test func versionIsAskedForByName() throws {
    let right = try #require(pattern.info.validator)
    #expect(try BlobSlice(pattern, validator: right).readAll().count == 1000)
    for wrong in [Validator(version: "other"), Validator(version: right.version, instance: "other")] {
      let error = failure { () throws(BlobError) in try BlobSlice(pattern, start: 5, validator: wrong).readAll() }
      #expect(error?.code == .changed)
      #expect(error?.message.contains("byte 5") == true)
    }
    let nameless = FaultySource(PipeSource(BlobPipe()))
    let error = failure { () throws(BlobError) in try BlobSlice(nameless, validator: right).open(Cancellation()) }
    #expect(error?.code == .changed, "a version was wanted, and none can be shown")
  }

  @Test func errorsOfTheSourceComeThrough() {
    let source = FaultySource(pattern, .fail(at: 500, BlobError(.io, "a bad sector", errno: 5)))
    let error = failure { () throws(BlobError) in try BlobSlice(source).readAll() }
    #expect(error?.message == "a bad sector" && error?.errno == 5)
  }

  @Test func sliceFarBeyondFourGiBIsExact() throws {
    let vast = PatternSource(length: .max, seed: 7)
    let start: Int64 = (1 << 62) + 12_345
    #expect(try BlobSlice(vast, start: start, length: 10_000).readAll() == vast.bytes(at: start, count: 10_000))
    #expect(try BlobSlice(vast, start: .max - 3).readAll() == vast.bytes(at: .max - 3, count: 3))
  }
}
