import BlobHTTP
import Synchronization

/// A pool of equally large buffers for short use. It allocates hardly more buffers than are in use at the same time.
final class BufferPool: Sendable {
  /// Size of each buffer, in bytes.
  let size: Int
  private let made = Atomic(0)
  /// Addresses. The buffer that was used last is reused first, because it is probably still in the processor's cache.
  private let free = Mutex<[UInt]>([])

  init(size: Int) { self.size = size }

  deinit {
    for address in free.withLock({ $0 }) { UnsafeMutableRawPointer(bitPattern: address)?.deallocate() }
  }

  /// Returns a buffer with undefined content.
  func take() -> UnsafeMutableRawBufferPointer {
    if let address = free.withLock({ $0.popLast() }) {
      return UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: size)
    }
    made.add(1, ordering: .relaxed)
    return .allocate(byteCount: size, alignment: 16)
  }

  /// Whether a worker may keep its buffer for its next request. If few workers have buffers, this is cheap, and it
  /// avoids moving memory between processors, which costs a tenth of all work for small files.
  var mayBeKept: Bool { made.load(ordering: .relaxed) <= 8 }

  /// Returns a buffer that came from `take` to the pool; only once for each `take`.
  func give(_ buffer: UnsafeMutableRawBufferPointer) {
    let address = UInt(bitPattern: buffer.baseAddress)
    free.withLock { $0.append(address) }
  }
}
