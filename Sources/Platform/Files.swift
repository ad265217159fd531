/// Writes a file's content to the disk, and as much of its metadata as reading it again needs. It blocks. Negative, with
/// `errno`: the system could not.
package func flushContent(_ descriptor: Int32) -> Int32 {
  #if os(Linux)
    return fdatasync(descriptor)
  #else
    // The headers of Apple's systems do not declare `fdatasync`.
    return fsync(descriptor)
  #endif
}
