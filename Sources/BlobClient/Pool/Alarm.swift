import BlobHTTP
import Platform

/// Wakes a thread that waits for descriptors with `poll`.
final class Alarm: Sendable {
  /// Becomes readable after `raise`; the waiting thread polls it too. -1: no descriptor was available, and
  /// `raise` has no effect.
  let descriptor: Int32
  private let end: Int32

  init() {
    #if os(Linux)
      descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
      end = descriptor
    #else
      var ends: [Int32] = [-1, -1]
      if pipe(&ends) == 0 {
        for end in ends {
          _ = fcntl(end, F_SETFD, FD_CLOEXEC)
          _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
      }
      (descriptor, end) = (ends[0], ends[1])
    #endif
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if end >= 0, end != descriptor { close(end) }
  }

  func raise() {
    var one: UInt64 = 1
    _ = write(end, &one, MemoryLayout<UInt64>.size)
  }

  /// Resets the alarm after the waiting thread has woken up.
  func lower() {
    var count: UInt64 = 0
    _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
  }
}
