import Platform

/// Bytes of a body that have just arrived; valid only during the call that passes them.
package enum BodyPiece {
  case bytes(UnsafeRawBufferPointer)
  /// Bytes in a kernel pipe, from which they can be moved to a file without passing through the process.
  case piped(Descriptor, count: Int)

  package var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .piped(_, let count): count
    }
  }

  /// Writes the bytes after the first `done`; a pipe no longer contains those. Like `pwrite`, it may write fewer bytes,
  /// and returns -1 with `errno` on failure.
  func write(to file: Descriptor, at offset: Int64, after done: Int) -> Int {
    switch self {
    case .bytes(let bytes):
      let rest = bytes[done...]
      return pwrite(file.number, bytes.baseAddress! + done, rest.count, off_t(offset))
    case .piped(let pipe, let count):
      #if os(Linux)
        let written = fb_splice(pipe.number, file.number, offset, UInt(count - done))
        if written >= 0 || errno != EINVAL { return written }
      #endif
      return Self.copy(pipe, to: file, at: offset, count - done)
    }
  }

  /// Copies the bytes, for file systems that do not support `splice`.
  private static func copy(_ pipe: Descriptor, to file: Descriptor, at offset: Int64, _ count: Int) -> Int {
    withUnsafeTemporaryAllocation(byteCount: min(count, 64 << 10), alignment: 16) { buffer in
      let got = read(pipe.number, buffer.baseAddress!, buffer.count)
      var done = 0
      while done < got {
        let written = pwrite(file.number, buffer.baseAddress! + done, got - done, off_t(offset) + off_t(done))
        if written < 0, errno == EINTR { continue }
        if written == 0 { errno = ENOSPC }
        if written <= 0 { return -1 }
        done += written
      }
      return got
    }
  }
}
