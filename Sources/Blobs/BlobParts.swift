/// A source divided into parts that can be opened independently: for uploads and transfers in several pieces.
///
/// Parts are computed on access and use no memory. All parts belong to one version if the source can distinguish
/// versions: once the content has changed, opening a part throws `.changed`.
public struct BlobParts: RandomAccessCollection, Sendable {
  /// Length of all parts together, in bytes.
  public let length: Int64
  /// Length of each part except the last, in bytes.
  public let size: Int64
  public let count: Int
  private let source: any BlobSource
  private let validator: Validator?

  /// Divides the source into `count` parts, at least 1; the last part also gets the remainder of the division. For
  /// example, 3,000,000,000 bytes in 13 parts are twelve parts of 230,769,230 bytes and one of 230,769,240. There are
  /// fewer parts if the source has fewer bytes than `count`: no part is empty, except the only part of an empty source.
  ///
  /// Blocks and throws as `info` does. Also throws `.unsupported` if the source does not know its length.
  public init(_ source: any BlobSource, count: Int, _ cancel: Cancellation) throws(BlobError) {
    precondition(count > 0)
    let (length, validator) = try Self.measure(source, cancel)
    let count = Int(clamping: Swift.max(1, Swift.min(Int64(count), length)))
    self.init(source, validator, length: length, size: length / Int64(count), count: count)
  }

  /// Divides the source into parts of `size` bytes, at least 1; the last may be smaller. An empty source is one empty
  /// part.
  ///
  /// Blocks and throws as `info` does. Also throws `.unsupported` if the source does not know its length.
  public init(_ source: any BlobSource, size: Int64, _ cancel: Cancellation) throws(BlobError) {
    precondition(size > 0)
    let (length, validator) = try Self.measure(source, cancel)
    // Adding `size - 1` before the division would round up too, but may overflow.
    let count = length == 0 ? 1 : (length - 1) / size + 1
    self.init(source, validator, length: length, size: size, count: Int(clamping: count))
  }

  private init(_ source: any BlobSource, _ validator: Validator?, length: Int64, size: Int64, count: Int) {
    self.source = source
    self.validator = validator
    self.length = length
    self.size = size
    self.count = count
  }

  private static func measure(
    _ source: any BlobSource, _ cancel: Cancellation
  ) throws(BlobError) -> (Int64, Validator?) {
    let info = try source.info(cancel)
    guard let length = info.length else {
      throw BlobError(.unsupported, "split a source into parts: it does not know its length")
    }
    return (length, info.validator)
  }

  public var startIndex: Int { 0 }
  public var endIndex: Int { count }

  public subscript(index: Int) -> SlicedSource {
    precondition(indices.contains(index))
    let start = Int64(index) * size
    let bytes = index == count - 1 ? length - start : size
    return SlicedSource(source, start: start, length: bytes, validator: validator)
  }
}
