import BlobStreams
import Blobs
import Foundation

/// What goes through a bound pair.
enum Pairs {
  /// So many bytes from one thread to another, `chunk` at a time; `grown` is how much more memory the process has at the
  /// end than after a tenth of them.
  static func pass(
    _ total: Int, through capacity: Int, chunk: Int
  ) -> (gigabytesPerSecond: Double, grown: Int) {
    let pair = BoundStreams(capacity: capacity)
    pair.output.open()
    pair.input.open()
    Thread.detachNewThread { produce(total, chunk, into: pair.output) }
    let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: chunk)
    defer { buffer.deallocate() }
    var read = 0
    var early = resident()
    let start = ContinuousClock.now
    while case let count = pair.input.read(buffer, maxLength: chunk), count > 0 {
      if read < total / 10 && read + count >= total / 10 { early = resident() }
      read += count
    }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    guard read == total, pair.input.streamStatus == .atEnd else { fatalError("\(read) of \(total) bytes were read") }
    return (Double(total) / seconds / 1e9, resident() - early)
  }

  private static func produce(_ total: Int, _ chunk: Int, into output: BoundOutputStream) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 16)
    defer { buffer.deallocate() }
    buffer.initializeMemory(as: UInt8.self, repeating: 7)
    var left = total
    while left > 0 {
      let piece = UnsafeRawBufferPointer(rebasing: buffer.prefix(left))
      do { try output.writeAll(piece) } catch { fatalError("\(error)") }
      left -= piece.count
    }
    output.close()
  }

  /// Bytes of memory that this process has now.
  private static func resident() -> Int {
    guard let status = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
      let pages = status.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { fatalError("the system does not tell how much memory a process has") }
    return pages * Int(getpagesize())
  }
}
