/// A range of a source as a separate source, whose first byte is at offset 0.
public struct SlicedSource: BlobSource {
  /// The range, in the form that request bodies use.
  public let slice: BlobSlice

  /// Creates a source of a slice, without opening it.
  public init(_ slice: BlobSlice) { self.slice = slice }

  /// `length` nil: to the end of `source`, wherever that is.
  public init(_ source: any BlobSource, start: Int64 = 0, length: Int64? = nil, validator: Validator? = nil) {
    self.init(BlobSlice(source, start: start, length: length, validator: validator))
  }

  public var access: BlobAccess { slice.source.access }

  /// The validator includes the range: another range of the same version is different content. Throws `.changed` if the
  /// source's version differs from the slice's validator.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let whole = try slice.source.info(cancel)
    if let wanted = slice.validator, wanted != whole.validator {
      throw BlobError(.changed, "the content changed since it was first looked at (byte \(slice.start) wanted)")
    }
    if let there = whole.length, there < slice.start {
      throw BlobError(.outOfRange, "a slice from byte \(slice.start) on: the source has \(there)")
    }
    var info = whole
    info.length = slice.length ?? whole.length.map { $0 - slice.start }
    return named(info)
  }

  /// Opening at an offset does not read the bytes before it. A short or changed source never looks complete: see
  /// `BlobSlice`.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard 0...(slice.length ?? .max - slice.start) ~= offset else {
      let end = slice.length.map { "it has \($0)" } ?? "it begins at byte \(slice.start) of the source"
      throw BlobError(.outOfRange, "open a slice at byte \(offset): \(end)")
    }
    let rest = BlobSlice(
      slice.source, start: slice.start + offset, length: slice.length.map { $0 - offset }, validator: slice.validator)
    let reader = try rest.open(cancel)
    var info = reader.info
    info.length = info.length.map { $0 + offset }
    return SlicedReader(reader, named(info))
  }

  private func named(_ info: BlobInfo) -> BlobInfo {
    let range = "\(slice.start)+\(slice.length.map(String.init) ?? "")"
    let validator = info.validator.map { Validator(version: "\(range) of \($0.version)", instance: $0.instance) }
    return BlobInfo(
      length: info.length, validator: validator, preferredRead: info.preferredRead,
      instanceLasts: info.instanceLasts)
  }
}

/// Reads a slice; its `info` has the validator of the range.
private final class SlicedReader: BlobReader {
  let info: BlobInfo
  private let reader: any BlobReader

  init(_ reader: any BlobReader, _ info: BlobInfo) {
    self.reader = reader
    self.info = info
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
  func fileRegion() -> FileRegion? { reader.fileRegion() }
  func finish() throws(BlobError) { try reader.finish() }
}
