import Blobs
import Platform

/// Holds what arrived against what was sent, byte by byte.
struct DemoVerify {
  enum Comparison: Sendable, Hashable {
    /// The number of bytes in each.
    case equal(Int64)
    /// The first byte that is another, or where the shorter one ends.
    case different(at: Int64)
  }

  private let block = 1 << 20
  private let isStopped: () -> Bool

  init(isStopped: @escaping () -> Bool = { false }) { self.isStopped = isStopped }

  /// Reads both to the end, or to the first difference.
  func compare(_ a: BytePath, _ b: BytePath) throws(DemoError) -> Comparison {
    let buffers = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * block, alignment: 4096)
    defer { buffers.deallocate() }
    let (first, second) = (
      UnsafeMutableRawBufferPointer(rebasing: buffers[..<block]),
      UnsafeMutableRawBufferPointer(rebasing: buffers[block...])
    )
    do throws(BlobError) {
      let (left, right) = (try open(a), try open(b))
      var offset: Int64 = 0
      while !isStopped() {
        let (count, other) = (try fill(first, from: left), try fill(second, from: right))
        if let index = firstDifference(first, second, min(count, other)) {
          return .different(at: offset + Int64(index))
        }
        offset += Int64(min(count, other))
        if count != other { return .different(at: offset) }
        if count == 0 { return .equal(offset) }
      }
    } catch {
      throw DemoError(error.message)
    }
    throw .interrupted
  }

  private func open(_ path: BytePath) throws(BlobError) -> any BlobReader {
    try FileSource(path).open(at: 0, Cancellation())
  }

  private func fill(
    _ buffer: UnsafeMutableRawBufferPointer, from reader: any BlobReader
  ) throws(BlobError) -> Int {
    var count = 0
    while count < buffer.count {
      let got = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
      if got == 0 { break }
      count += got
    }
    return count
  }

  private func firstDifference(
    _ a: UnsafeMutableRawBufferPointer, _ b: UnsafeMutableRawBufferPointer, _ count: Int
  ) -> Int? {
    if count == 0 || memcmp(a.baseAddress!, b.baseAddress!, count) == 0 { return nil }
    return (0..<count).first { a[$0] != b[$0] }
  }
}
