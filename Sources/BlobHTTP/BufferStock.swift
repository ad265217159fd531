import Synchronization

/// Buffers of one size that are lent for a moment: as many as are in use at once, however many might use one.
final class BufferStock: Sendable {
  /// Bytes of each.
  let size: Int
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
    return .allocate(byteCount: size, alignment: 16)
  }

  /// Once, of what was taken here.
  func give(_ buffer: UnsafeMutableRawBufferPointer) {
    let address = UInt(bitPattern: buffer.baseAddress)
    free.withLock { $0.append(address) }
  }
}
