/// The length that a sequential source has promised, held against what comes.
package struct PromisedLength {
  private let source: String
  private let length: Int64?

  /// `source` is named in errors; `length` nil promises nothing.
  package init(_ source: String, _ length: Int64?) {
    self.source = source
    self.length = length
  }

  /// `count` bytes came at `offset`; 0: the end. Throws `.truncated` for an early end, `.changed` for more than promised.
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
