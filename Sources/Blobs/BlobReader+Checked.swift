extension BlobReader {
  /// Like `read`, but throws `.io` if a source written outside this package returns an impossible count. `offset` is
  /// only used in the error message; nil if unknown.
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
