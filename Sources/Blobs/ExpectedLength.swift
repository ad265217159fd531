/// Checks the bytes of a sequential source against the length that was promised for it.
package struct ExpectedLength {
  private let source: String
  private let length: Int64?

  /// Errors name `source`. With `length` nil, every length is accepted.
  package init(_ source: String, _ length: Int64?) {
    self.source = source
    self.length = length
  }

  /// Call with the `count` of bytes read at `offset`; 0 means the end. Throws `.truncated` for an early end, `.changed`
  /// if there are more bytes than promised.
  package func check(_ count: Int, at offset: Int64) throws(BlobError) {
    guard let length else { return }
    if count == 0 && offset < length {
      throw BlobError(.truncated, "\(source) ended at byte \(offset) of \(length)")
    }
    if Int64(count) > length - offset {
      throw BlobError(.changed, "\(source) gives more than the \(length) bytes it promised")
    }
  }
}
