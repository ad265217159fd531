import Blobs
import Foundation

/// A source and a link that take the same time for a byte: what reading ahead saves of waiting for each in turn.
enum Ahead {
  private static let nanosecondsAByte = 40.0
  private static let length: Int64 = 32 << 20

  /// Time, as a share of what the link needs alone. `bytesPerSecond`: reading ahead begins below that; nil: at once.
  static func share(capacity: Int?, ifSlowerThan bytesPerSecond: Int64? = nil) throws -> Double {
    let slow = SlowSource(length: length, nanosecondsAByte: nanosecondsAByte)
    let source: any BlobSource =
      capacity.map { ReadAheadSource(slow, capacity: $0, ifSlowerThan: bytesPerSecond) } ?? slow
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    let alone = ContinuousClock().measure { for _ in 0..<(length / Int64(buffer.count)) { pass(buffer.count) } }
    let begin = ContinuousClock.now
    let reader = try source.open(at: 0, Cancellation())
    while case let count = try reader.read(into: buffer), count > 0 { pass(count) }
    return (ContinuousClock.now - begin) / alone
  }

  /// What the link does with bytes.
  fileprivate static func pass(_ count: Int) { usleep(UInt32(Double(count) * nanosecondsAByte / 1000)) }
}

private struct SlowSource: BlobSource {
  let length: Int64
  let nanosecondsAByte: Double
  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) -> BlobInfo { BlobInfo(length: length) }
  func open(at offset: Int64, _ cancel: Cancellation) -> any BlobReader { Reader(info(cancel), at: offset) }

  final class Reader: BlobReader {
    let info: BlobInfo
    private var offset: Int64

    init(_ info: BlobInfo, at offset: Int64) {
      self.info = info
      self.offset = offset
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
      let count = min(buffer.count, Int(info.length! - offset))
      Ahead.pass(count)
      offset += Int64(count)
      return count
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() {}
  }
}
