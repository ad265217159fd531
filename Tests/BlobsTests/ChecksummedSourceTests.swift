import BlobTesting
import Synchronization
import Testing

@testable import BlobCrypto
@testable import Blobs

@Suite struct ChecksummedSourceTests {
  private let key = Array(UInt8(1)...32)
  private let pattern = PatternSource(length: 10_000)

  /// Stores the last record.
  private final class Record: Sendable {
    private let state = Mutex<(end: Int64, value: [UInt8])>((0, []))
    var end: Int64 { state.withLock { $0.end } }
    var value: [UInt8] { state.withLock { $0.value } }
    func keep(_ end: Int64, _ value: [UInt8]) { state.withLock { $0 = (end, value) } }
  }

  private func checksum(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let checksum = KeyedChecksum(key: key)
    Array(bytes).withUnsafeBytes { checksum.update($0) }
    return checksum.value()
  }

  private func read(_ source: ChecksummedSource, _ range: Range<Int64>) throws {
    let reader = try BlobSlice(source, start: range.lowerBound, length: Int64(range.count)).open(Cancellation())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 700, alignment: 1)
    defer { buffer.deallocate() }
    while try reader.read(into: buffer) > 0 {}
  }

  /// RFC 8439 §2.5.2.
  @Test func theChecksumIsPoly1305() {
    let key: [UInt8] = [
      0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33, 0x7f, 0x44, 0x52, 0xfe, 0x42, 0xd5, 0x06, 0xa8, 0x01, 0x03, 0x80,
      0x8a, 0xfb, 0x0d, 0xb2, 0xfd, 0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b,
    ]
    let checksum = KeyedChecksum(key: key)
    for text in ["Cryptographic Forum ", "Research Group"] {
      _ = checksum.value()  // Reading the value early changes nothing.
      Array(text.utf8).withUnsafeBytes { checksum.update($0) }
    }
    #expect(Digest.hex(checksum.value()) == "a8061dc1305136c6c22b8baf0c0127a9")
  }

  @Test func bytesThatAreReadAgainCountOnce() throws {
    let record = Record()
    let source = ChecksummedSource(pattern, from: 0, key: key, record.keep)
    try read(source, 0..<3000)
    try read(source, 2000..<5000)
    try read(source, 100..<200)
    #expect(record.end == 5000)
    #expect(record.value == checksum(pattern.bytes(at: 0, count: 5000)))
  }

  @Test func theChecksumBeginsAtItsOffset() throws {
    let record = Record()
    let source = ChecksummedSource(pattern, from: 4000, key: key, record.keep)
    try read(source, 3000..<3500)
    #expect(record.end == 0)
    try read(source, 3000..<10_000)
    #expect(record.end == 10_000)
    #expect(record.value == checksum(pattern.bytes(at: 4000, count: 6000)))
  }

  @Test func aReadBeyondAGapIsNotRecorded() throws {
    let record = Record()
    let source = ChecksummedSource(pattern, from: 0, key: key, record.keep)
    try read(source, 0..<1000)
    try read(source, 2000..<3000)
    #expect(record.end == 1000)
    #expect(record.value == checksum(pattern.bytes(at: 0, count: 1000)))
  }

  @Test func theChecksumIsRecordedBeforeTheReaderReturns() throws {
    let record = Record()
    let source = ChecksummedSource(pattern, from: 0, key: key, record.keep)
    let reader = try source.open(at: 0, Cancellation())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 700, alignment: 1)
    defer { buffer.deallocate() }
    let count = try reader.read(into: buffer)
    #expect(record.end == Int64(count))
    #expect(reader.fileRegion() == nil)
  }
}
