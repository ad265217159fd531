/// A range of a source, opened again for each attempt to send it.
public struct BlobSlice: Sendable {
  /// The source that contains the range.
  public var source: any BlobSource
  /// Offset of the first byte.
  public var start: Int64
  /// Length in bytes; nil: up to the end of the source, wherever that is.
  public var length: Int64?
  /// The version that the bytes must belong to; nil: the version found when opening.
  public var validator: Validator?

  /// Creates a slice without opening the source. `length` is in bytes; nil: up to the end of the source.
  public init(
    _ source: any BlobSource, start: Int64 = 0, length: Int64? = nil, validator: Validator? = nil
  ) {
    precondition(start >= 0 && length ?? 0 >= 0 && start <= Int64.max - (length ?? 0))
    self.source = source
    self.start = start
    self.length = length
    self.validator = validator
  }

  /// Opens a reader of exactly this range, which never lets a short or changed body look complete.
  ///
  /// The reader throws `.changed` if the version differs from `validator`, and `.truncated` if the source ends early,
  /// at the latest in the `read` that would have returned the last byte. The source reader's `finish()` is called
  /// before the last byte is returned. If the range extends to the end and the source knows its length, the reader
  /// enforces that length.
  public func open(_ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader: any BlobReader
    do { reader = try source.open(at: start, cancel) } catch {
      // The present version may be shorter.
      if error.code == .outOfRange, let validator, let now = try? source.info(cancel), now.validator != validator {
        throw BlobError.changed(from: start, cause: error)
      }
      throw error
    }
    let whole = reader.info
    if let length = whole.length, length < start {
      throw BlobError(.outOfRange, "open at byte \(start): the source has \(length)")
    }
    if let validator, validator != whole.validator { throw BlobError.changed(from: start) }
    return SliceReader(self, reader, whole)
  }
}

extension BlobError {
  /// The source has another version than the one whose bytes from `offset` on are wanted.
  package static func changed(from offset: Int64, cause: (any Error)? = nil) -> BlobError {
    BlobError(.changed, "the content changed since it was first looked at (byte \(offset) wanted)", cause: cause)
  }
}

/// Counts the remaining bytes of a slice and, at the end, asks the source whether its version is still the same.
private final class SliceReader: ReadAheadAware {
  private let reader: any BlobReader
  private let slice: BlobSlice
  private var given: Int64 = 0

  let info: BlobInfo

  init(_ slice: BlobSlice, _ reader: any BlobReader, _ whole: BlobInfo) {
    self.reader = reader
    self.slice = slice
    info = BlobInfo(
      length: slice.length ?? whole.length.map { $0 - slice.start },
      validator: whole.validator, preferredRead: whole.preferredRead, instanceLasts: whole.instanceLasts,
      readAhead: whole.readAhead)
  }

  func willBeReadAhead() { (reader as? any ReadAheadAware)?.willBeReadAhead() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    guard let length = info.length else { return try readToEnd(into: buffer) }
    let owed = length - given
    if owed == 0 { return try readPastEnd(into: buffer) }
    let count = try reader.readChecked(
      into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: owed))), at: slice.start + given)
    if count == 0 {
      throw BlobError(.truncated, "the source ended at byte \(slice.start + given) of \(slice.start + length)")
    }
    given += Int64(count)
    if given == length { try reader.finish() }
    return count
  }

  /// Reads a range whose length is known only at its end.
  private func readToEnd(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.readChecked(into: buffer, at: slice.start + given)
    given += Int64(count)
    if count == 0 { try reader.finish() }
    return count
  }

  /// All bytes were returned. A range to the end checks that the source really ends here. An empty range has not called
  /// `finish()` yet.
  private func readPastEnd(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if slice.length == nil, try reader.read(into: buffer) > 0 {
      throw BlobError(.changed, "the source goes on after its \(slice.start + given) bytes")
    }
    if given == 0 { try reader.finish() }
    return 0
  }

  func fileRegion() -> FileRegion? {
    guard var region = reader.fileRegion() else { return nil }
    if let length = info.length {
      let owed = length - given - region.start
      if owed < 0 { return nil }
      region.length = min(region.length ?? owed, owed)
    }
    return region
  }

  func finish() throws(BlobError) { try reader.finish() }
}
