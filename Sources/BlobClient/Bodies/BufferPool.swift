import BlobHTTP
import Synchronization

/// Buffers of one size that are lent for a moment: few more than are in use at once, however many might use one.
final class BufferPool: Sendable {
  /// Bytes of each.
  let size: Int
  private let made = Atomic(0)
  /// Addresses; the one that was used last, which the processor has at hand, goes first.
  private let free = Mutex<[UInt]>([])

  init(size: Int) { self.size = size }

  deinit {
    for address in free.withLock({ $0 }) { UnsafeMutableRawPointer(bitPattern: address)?.deallocate() }
  }

  /// What is in it is anybody's.
  func take() -> UnsafeMutableRawBufferPointer {
    if let address = free.withLock({ $0.popLast() }) {
      return UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: size)
    }
    made.add(1, ordering: .relaxed)
    return .allocate(byteCount: size, alignment: 16)
  }

  /// Who has one may keep it for the next time. Memory that goes from one processor to the other each time costs a tenth of
  /// all work for small files, and few have it.
  var mayBeKept: Bool { made.load(ordering: .relaxed) <= 8 }

  /// Once, of what was taken here.
  func give(_ buffer: UnsafeMutableRawBufferPointer) {
    let address = UInt(bitPattern: buffer.baseAddress)
    free.withLock { $0.append(address) }
  }
}
