/// A range of a source, opened anew for each attempt to send it.
public struct BlobSlice: Sendable {
  public var source: any BlobSource
  /// Offset of the first byte.
  public var start: Int64
  /// Bytes; nil: to the end, wherever that turns out to be.
  public var length: Int64?
  /// The version the bytes must come from; nil: whichever is opened.
  public var validator: Validator?

  public init(
    _ source: any BlobSource, start: Int64 = 0, length: Int64? = nil, validator: Validator? = nil
  ) {
    precondition(start >= 0 && length ?? 0 >= 0)
    self.source = source
    self.start = start
    self.length = length
    self.validator = validator
  }

  /// A reader of exactly this range, which never lets a short or changed body look complete.
  ///
  /// `.changed` when another version is found; `.truncated` when the source ends early, at the latest in the `read`
  /// that would have given the last byte. Where the range reaches the end, `finish()` of the source's reader is asked
  /// before the last byte is handed over.
  public func open(_ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    SliceReader(self, try openSource(cancel))
  }

  private func openSource(_ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try source.open(at: start, cancel)
    if let validator, let found = reader.info.validator, found != validator {
      throw BlobError(.changed, "the content changed since it was first looked at (byte \(start) wanted)")
    }
    return reader
  }
}

/// Counts what a slice still owes and asks the source at the end whether it is the same.
private final class SliceReader: BlobReader {
  private let reader: any BlobReader
  private let slice: BlobSlice
  private var given: Int64 = 0

  init(_ slice: BlobSlice, _ reader: any BlobReader) {
    self.slice = slice
    self.reader = reader
  }

  var info: BlobInfo {
    BlobInfo(
      length: slice.length ?? reader.info.length.map { $0 - slice.start },
      validator: reader.info.validator, preferredRead: reader.info.preferredRead)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    guard let length = slice.length else { return try readToEnd(into: buffer) }
    let owed = length - given
    if owed == 0 { return 0 }
    let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(min(owed, Int64(buffer.count)))))
    let count = try reader.read(into: window)
    if count == 0 { throw truncated(at: given, of: length) }
    given += Int64(count)
    if given == length { try reader.finish() }
    return count
  }

  private func readToEnd(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.read(into: buffer)
    given += Int64(count)
    let promised = reader.info.length.map { $0 - slice.start }
    if count == 0, let promised, given < promised { throw truncated(at: given, of: promised) }
    if count == 0 || given == promised { try reader.finish() }
    return count
  }

  private func truncated(at given: Int64, of length: Int64) -> BlobError {
    BlobError(.truncated, "the source ended at byte \(slice.start + given) of \(slice.start + length)")
  }

  func fileRegion() -> FileRegion? { reader.fileRegion() }

  func finish() throws(BlobError) { try reader.finish() }
}
