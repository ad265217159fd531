/// A source that is opened again when a reader throws `.invalidated`, as when a memory card or a camera was unplugged
/// and connected again.
///
/// The source is reopened at the same byte only if its version is the same, so two versions are never mixed. A source
/// without a validator cannot prove that, and is not reopened.
public struct ReopeningSource: BlobSource {
  package let source: any BlobSource
  private let attempts: Int
  private let patience: Duration

  /// The usual `patience`.
  public static let usualPatience = Duration.seconds(60)

  /// Gives up after `attempts` consecutive openings that produced no byte, and when an opening fails `patience` after the
  /// source was lost: whoever reads it can then say that it waits.
  public init(_ source: any BlobSource, attempts: Int = 3, patience: Duration = ReopeningSource.usualPatience) {
    precondition(attempts >= 0)
    self.source = source
    self.attempts = attempts
    self.patience = patience
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
    try ReopeningReader(source, at: offset, attempts, patience, cancel)
  }
}

private final class ReopeningReader: BlobReader {
  let info: BlobInfo
  private let source: any BlobSource
  private let attempts: Int
  private let patience: Duration
  private let cancel: Cancellation
  private var reader: any BlobReader
  private var offset: Int64
  /// Openings that remain before a byte must arrive.
  private var left: Int
  /// When the source must be there again; nil: it was not lost since its last byte.
  private var end: ContinuousClock.Instant?

  init(
    _ source: any BlobSource, at offset: Int64, _ attempts: Int, _ patience: Duration, _ cancel: Cancellation
  ) throws(BlobError) {
    self.source = source
    self.offset = offset
    self.attempts = attempts
    self.patience = patience
    self.cancel = cancel
    left = attempts
    reader = try Self.open(source, at: offset, &left, until: .now + patience, cancel)
    info = reader.info
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try persisting { reader throws(BlobError) in try reader.readChecked(into: buffer, at: offset) }
    offset += Int64(count)
    if count > 0 { (left, end) = (attempts, nil) }
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
        let end = end ?? .now + patience
        self.end = end
        if .now >= end { throw error }
        left -= 1
        reader = try Self.open(source, at: offset, &left, until: end, cancel)
        if reader.info.validator != info.validator || reader.info.length != info.length {
          throw BlobError(.changed, "the content changed before byte \(offset) could be opened again", cause: error)
        }
      }
    }
  }

  private static func open(
    _ source: any BlobSource, at offset: Int64, _ left: inout Int, until end: ContinuousClock.Instant,
    _ cancel: Cancellation
  ) throws(BlobError) -> any BlobReader {
    while true {
      do {
        return try source.open(at: offset, cancel)
      } catch  where error.code == .invalidated && left > 0 && .now < end {
        left -= 1
      }
    }
  }
}
