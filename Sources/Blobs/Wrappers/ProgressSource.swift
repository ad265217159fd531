/// A source that reports the position of its readers.
///
/// A byte that was read may not have arrived anywhere: BlobUpload's `UploadProgress` reports what a server has.
public struct ProgressSource: BlobSource {
  /// The position of a reader.
  public struct Position: Sendable, Hashable {
    /// Offset of the next byte in the source, also if the reader was opened at a later byte: a resumed upload continues
    /// where it stopped.
    public var offset: Int64
    /// Length of the whole source in bytes; nil if it is known only at the end.
    public var length: Int64?
    /// Whether the reader has reached the end.
    public var isAtEnd: Bool

    /// Creates a position. `offset` and `length` are in bytes; nil: the length is unknown.
    public init(offset: Int64, length: Int64?, isAtEnd: Bool) {
      self.offset = offset
      self.length = length
      self.isAtEnd = isAtEnd
    }
  }

  private let source: any BlobSource
  private let report: Report

  /// Calls `report` when a reader has been opened, then at most once per `interval`, and once at the end. The call is
  /// made on the reading thread, which waits for it.
  public init(
    _ source: any BlobSource, every interval: Duration = .milliseconds(100),
    _ report: @escaping @Sendable (Position) -> Void
  ) {
    self.init(source, every: interval, clock: MonotonicClock(), report)
  }

  package init(
    _ source: any BlobSource, every interval: Duration, clock: any BlockingClock,
    _ report: @escaping @Sendable (Position) -> Void
  ) {
    self.source = source
    self.report = Report(call: report, interval: interval, clock: clock)
  }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    ProgressReader(try source.open(at: offset, cancel), at: offset, report)
  }

  fileprivate struct Report: Sendable {
    let call: @Sendable (Position) -> Void
    let interval: Duration
    let clock: any BlockingClock
  }
}

private final class ProgressReader: BlobReader {
  private let reader: any BlobReader
  private let report: ProgressSource.Report
  private var position: ProgressSource.Position
  private var last: Duration

  init(_ reader: any BlobReader, at offset: Int64, _ report: ProgressSource.Report) {
    self.reader = reader
    self.report = report
    let length = reader.info.length
    position = .init(offset: offset, length: length, isAtEnd: offset == length)
    last = report.clock.now
    report.call(position)
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.readChecked(into: buffer)
    if position.isAtEnd { return count }
    position.offset += Int64(count)
    position.isAtEnd = count == 0 || position.offset == position.length
    let now = report.clock.now
    if position.isAtEnd || now - last >= report.interval {
      last = now
      report.call(position)
    }
    return count
  }

  // Bytes sent from a file region would not be reported.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
