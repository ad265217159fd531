/// A source that is opened again when a reader throws `.invalidated`, as when a memory card or a camera was unplugged
/// and connected again.
///
/// The source is reopened at the same byte only if its version is the same, so two versions are never mixed. A source
/// without a validator cannot prove that, and is not reopened.
public struct ReopeningSource: BlobSource {
  package let source: any BlobSource
  private let attempts: Int

  /// Gives up after `attempts` consecutive openings that produced no byte.
  public init(_ source: any BlobSource, attempts: Int = 3) {
    precondition(attempts >= 0)
    self.source = source
    self.attempts = attempts
  }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    var left = attempts
    while true {
      do {
        return try source.info(cancel)
      } catch  where error.code == .invalidated && left > 0 {
        left -= 1
      }
    }
  }

  /// The reader throws `.changed` if it finds another version, and the last `.invalidated` when it gives up.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try ReopeningReader(source, at: offset, attempts, cancel)
  }
}

private final class ReopeningReader: BlobReader {
  let info: BlobInfo
  private let source: any BlobSource
  private let attempts: Int
  private let cancel: Cancellation
  private var reader: any BlobReader
  private var offset: Int64
  /// Openings that remain before a byte must arrive.
  private var left: Int

  init(_ source: any BlobSource, at offset: Int64, _ attempts: Int, _ cancel: Cancellation) throws(BlobError) {
    self.source = source
    self.offset = offset
    self.attempts = attempts
    self.cancel = cancel
    left = attempts
    reader = try Self.open(source, at: offset, &left, cancel)
    info = reader.info
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try persisting { reader throws(BlobError) in try reader.readChecked(into: buffer, at: offset) }
    offset += Int64(count)
    if count > 0 { left = attempts }
    return count
  }

  func fileRegion() -> FileRegion? { reader.fileRegion() }

  func finish() throws(BlobError) { try persisting { reader throws(BlobError) in try reader.finish() } }

  private func persisting<Result>(
    _ work: (any BlobReader) throws(BlobError) -> Result
  ) throws(BlobError) -> Result {
    while true {
      do {
        return try work(reader)
      } catch  where error.code == .invalidated && left > 0 && info.validator != nil {
        left -= 1
        reader = try Self.open(source, at: offset, &left, cancel)
        if reader.info.validator != info.validator || reader.info.length != info.length {
          throw BlobError(.changed, "the content changed before byte \(offset) could be opened again", cause: error)
        }
      }
    }
  }

  private static func open(
    _ source: any BlobSource, at offset: Int64, _ left: inout Int, _ cancel: Cancellation
  ) throws(BlobError) -> any BlobReader {
    while true {
      do {
        return try source.open(at: offset, cancel)
      } catch  where error.code == .invalidated && left > 0 {
        left -= 1
      }
    }
  }
}
