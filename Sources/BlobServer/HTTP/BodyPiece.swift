import Platform

/// Bytes of a body that have just come, valid during the call that hands them over.
package enum BodyPiece {
  case bytes(UnsafeRawBufferPointer)
  /// In a pipe of the kernel's, from where they reach a file without passing through the process.
  case piped(Descriptor, count: Int)

  package var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .piped(_, let count): count
    }
  }

  /// Writes what follows the first `done` bytes, of which a pipe has been emptied. As `pwrite`: may write less; -1 and
  /// `errno` when it fails.
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

  /// For file systems that no pipe can be emptied into.
  private static func copy(_ pipe: Descriptor, to file: Descriptor, at offset: Int64, _ count: Int) -> Int {
    withUnsafeTemporaryAllocation(byteCount: min(count, 64 << 10), alignment: 16) { buffer in
      let got = read(pipe.number, buffer.baseAddress!, buffer.count)
      var done = 0
      while done < got {
        let written = pwrite(file.number, buffer.baseAddress! + done, got - done, off_t(offset) + off_t(done))
        if written < 0, errno != EINTR { return -1 }
        done += max(0, written)
      }
      return got
    }
  }
}
