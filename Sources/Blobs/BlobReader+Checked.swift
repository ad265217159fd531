extension BlobReader {
  /// As `read`. Anyone can write a source: what it says it read is believed only where that is possible.
  func readChecked(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try read(into: buffer)
    if !(0...buffer.count ~= count) {
      throw BlobError(.io, "the source says it read \(count) bytes into a buffer of \(buffer.count)")
    }
    return count
  }
}
