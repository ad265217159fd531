extension BlobReader {
  /// As `read`. Anyone can write a source: what it says it read is believed only where that is possible. `offset` is for
  /// the error, where it is known.
  package func readChecked(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64? = nil) throws(BlobError) -> Int
  {
    let count = try read(into: buffer)
    if !(0...buffer.count ~= count) {
      let place = offset.map { " at byte \($0)" } ?? ""
      throw BlobError(.io, "the source says it read \(count) bytes\(place) into a buffer of \(buffer.count)")
    }
    return count
  }
}
