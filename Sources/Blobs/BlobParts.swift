/// A source cut into parts, each of which opens on its own: for uploads and transfers in several pieces.
///
/// The parts are worked out as they are asked for; none holds memory. All belong to one version, if the source can
/// tell: once it is another, opening a part throws `.changed`.
public struct BlobParts: RandomAccessCollection, Sendable {
  /// Bytes of all parts together.
  public let length: Int64
  /// Bytes of each part but the last.
  public let size: Int64
  public let count: Int
  private let source: any BlobSource
  private let validator: Validator?

  /// `count` parts, at least 1, of which the last takes the rest of the division: 3,000,000,000 bytes in 13 are twelve
  /// of 230,769,230 and one of 230,769,240. Fewer where there are not as many bytes: no part is empty, but for the only
  /// one of a source without bytes.
  ///
  /// Blocks, as `info` does, and throws what it throws; `.unsupported` for a source that does not know its length.
  public init(_ source: any BlobSource, count: Int, _ cancel: Cancellation) throws(BlobError) {
    precondition(count > 0)
    let (length, validator) = try Self.measure(source, cancel)
    let count = Int(clamping: Swift.max(1, Swift.min(Int64(count), length)))
    self.init(source, validator, length: length, size: length / Int64(count), count: count)
  }

  /// Parts of `size` bytes, at least 1; the last may be smaller. A source without bytes is one empty part.
  ///
  /// Blocks, as `info` does, and throws what it throws; `.unsupported` for a source that does not know its length.
  public init(_ source: any BlobSource, size: Int64, _ cancel: Cancellation) throws(BlobError) {
    precondition(size > 0)
    let (length, validator) = try Self.measure(source, cancel)
    // Not rounded up by adding, which may overflow.
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
