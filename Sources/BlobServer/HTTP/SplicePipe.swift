import Platform

/// A kernel pipe that moves bytes from a socket to a file without passing them through the process.
struct SplicePipe: Sendable {
  let reader: Descriptor
  private let writer: Descriptor
  private let capacity: Int

  /// nil if the system does not support it or its limit is reached.
  init?() {
    #if os(Linux)
      var ends: [Int32] = [-1, -1]
      if pipe(&ends) != 0 { return nil }
      for end in ends {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
      }
      (reader, writer) = (Descriptor(ends[0]), Descriptor(ends[1]))
      // The system may grant less, or leave the size unchanged.
      capacity = max(Int(fb_set_pipe_size(ends[1], 1 << 20)), 64 << 10)
    #else
      return nil
    #endif
  }

  /// Moves available bytes from the socket into the pipe, at most `most` and at most the pipe's capacity. Like `recv`,
  /// returns 0 at the end, negative with `errno`.
  func fill(from socket: Descriptor, atMost most: Int64) -> Int {
    #if os(Linux)
      fb_splice(socket.number, writer.number, -1, UInt(min(most, Int64(capacity))))
    #else
      -1
    #endif
  }

  /// Discards the content, so that another body does not get it.
  func empty() {
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) {
      while read(reader.number, $0.baseAddress!, $0.count) > 0 {}
    }
  }
}
