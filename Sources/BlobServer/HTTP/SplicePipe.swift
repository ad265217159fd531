import Platform

/// A pipe of the kernel's, through which bytes reach a file from a socket without passing through the process.
struct SplicePipe: Sendable {
  let reader: Descriptor
  private let writer: Descriptor
  private let capacity: Int

  /// nil: the system has none, or no more of them.
  init?() {
    #if os(Linux)
      var ends: [Int32] = [-1, -1]
      if pipe(&ends) != 0 { return nil }
      for end in ends {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
      }
      (reader, writer) = (Descriptor(ends[0]), Descriptor(ends[1]))
      // The system may grant less, or what it had.
      capacity = max(Int(fb_set_pipe_size(ends[1], 1 << 20)), 64 << 10)
    #else
      return nil
    #endif
  }

  /// Takes what the socket has, `most` bytes and a pipe's load at most. As `recv`: 0 at the end, negative with `errno`.
  func fill(from socket: Descriptor, atMost most: Int64) -> Int {
    #if os(Linux)
      fb_splice(socket.number, writer.number, -1, UInt(min(most, Int64(capacity))))
    #else
      -1
    #endif
  }

  /// Throws away what is in it, so that no other body gets it.
  func empty() {
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) {
      while read(reader.number, $0.baseAddress!, $0.count) > 0 {}
    }
  }
}
