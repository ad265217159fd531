import BlobCrypto
import Blobs

/// Bytes of a source that one run handed to its connection, and their checksum, so that the next run can tell whether
/// the source still has them.
package struct SentRange: Sendable, Hashable {
  /// Offset of the first byte.
  package var start: Int64
  /// Offset after the last byte. The server may have received fewer.
  package var end: Int64
  package var key: [UInt8]
  package var value: [UInt8]

  /// The key of a range without a checksum, which only says how far the bytes were sent.
  static let noKey = [UInt8](repeating: 0, count: KeyedChecksum.keyCount)
  static let noValue = [UInt8](repeating: 0, count: KeyedChecksum.valueCount)

  package init(start: Int64, end: Int64, key: [UInt8], value: [UInt8]) {
    self.start = start
    self.end = end
    self.key = key
    self.value = value
  }
}

extension [SentRange] {
  /// Whether every byte of `source` before `end` equals what was sent. Bytes outside all ranges count as different.
  /// Reads all of these bytes; blocks.
  func match(
    _ source: any BlobSource, _ info: BlobInfo, upTo end: Int64, _ cancel: Cancellation,
    _ noteRead: (Int) -> Void = { _ in }
  ) throws(BlobError) -> Bool {
    var covered: Int64 = 0
    for range in sorted(by: { $0.start < $1.start }) where range.end > covered && covered < end {
      if range.start < 0 || range.start > covered || range.end > info.length ?? .max { return false }
      let slice = BlobSlice(
        source, start: range.start, length: range.end - range.start, validator: info.validator)
      if range.key.count != KeyedChecksum.keyCount || range.key == SentRange.noKey { return false }
      if try checksum(of: slice, range.key, cancel, noteRead) != range.value { return false }
      covered = range.end
    }
    return covered >= end
  }
}

private func checksum(
  of slice: BlobSlice, _ key: [UInt8], _ cancel: Cancellation, _ noteRead: (Int) -> Void
) throws(BlobError) -> [UInt8] {
  let checksum = KeyedChecksum(key: key)
  let reader = try slice.open(cancel)
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
  defer { buffer.deallocate() }
  while case let count = try reader.read(into: buffer), count > 0 {
    try cancel.check("compare what was sent")
    noteRead(count)
    checksum.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
  }
  return checksum.value()
}
