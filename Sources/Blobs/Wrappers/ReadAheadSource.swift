/// A source that is read ahead on a thread of its own, up to a bound: while one part is being sent, the next bytes are
/// read, so that a slow source and a slow link work at the same time.
///
/// Only for sources that can be opened at any byte. A sequential source is passed through unchanged, because bytes read
/// ahead are lost when their reader is released.
public struct ReadAheadSource: BlobSource {
  private let source: any BlobSource
  private let capacity: Int
  private let limit: Int64?

  /// Each reader buffers up to `capacity` bytes ahead of its consumer.
  ///
  /// - `bytesPerSecond`: reading ahead begins once the source delivers less than this. Until then, the consumer's
  ///   thread reads the source directly, which for a fast source costs less than another thread and another copy. nil:
  ///   reading ahead begins at once.
  public init(_ source: any BlobSource, capacity: Int = 1 << 20, ifSlowerThan bytesPerSecond: Int64? = nil) {
    precondition(capacity > 0 && bytesPerSecond ?? 1 > 0)
    self.source = source
    self.capacity = capacity
    limit = bytesPerSecond
  }

  public var access: BlobAccess { source.access }

  /// Like the source's, except `readAhead`, which is 0. The info of a reader that does not read ahead, or not yet,
  /// still has the source's value.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel).with(readAhead: 0) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if source.access == .sequential { return try source.open(at: offset, cancel) }
    try cancel.check("open a source to be read ahead")
    let reader = ReadAheadReader(cancel, capacity)
    if let limit { try reader.beginDirectly(source, at: offset, limit) } else { try reader.begin(source, at: offset) }
    return reader
  }
}

private final class ReadAheadReader: ReadAheadAware {
  private(set) var info = BlobInfo(length: nil)
  private let cancel: Cancellation
  private let capacity: Int
  /// Cancels the source's calls on the other thread.
  private let stop = Cancellation()
  private let ring = ReadAheadBuffer()
  /// The source's own reader and its speed, as long as it is fast enough.
  private var direct: (reader: any BlobReader, pace: ReadPace)?

  init(_ cancel: Cancellation, _ capacity: Int) {
    self.cancel = cancel
    self.capacity = capacity
  }

  deinit {
    ring.leave()
    stop.cancel()
  }

  func begin(_ source: any BlobSource, at offset: Int64) throws(BlobError) {
    ReadAheadBuffer.threads.submit { [ring, stop, capacity] in
      ring.serve(capacity) { () throws(BlobError) in (try source.open(at: offset, stop), offset) }
    }
    info = try waiting { () throws(BlobError) in try ring.opened(cancel) }
  }

  func beginDirectly(_ source: any BlobSource, at offset: Int64, _ limit: Int64) throws(BlobError) {
    let reader = try waiting { () throws(BlobError) in try source.open(at: offset, stop) }
    info = reader.info
    direct = (reader, ReadPace(limit: limit, offset: offset))
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    guard let reader = direct?.reader else {
      return try waiting { () throws(BlobError) in try ring.take(into: buffer, cancel) }
    }
    let begin = SuspendingClock.now
    let count = try waiting { () throws(BlobError) in try reader.readChecked(into: buffer) }
    direct!.pace.note(count, in: SuspendingClock.now - begin)
    if direct!.pace.isSlow && !isReadAhead { goAhead() }
    return count
  }

  /// Whether another reader already reads this one ahead.
  private var isReadAhead = false

  func willBeReadAhead() { isReadAhead = true }

  /// Hands the source's reader to the other thread.
  private func goAhead() {
    let (reader, offset) = (direct!.reader, direct!.pace.offset)
    direct = nil
    info = info.with(readAhead: 0)
    ring.read(reader, at: offset, capacity)
  }

  // The next bytes are already in memory.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) {
    try waiting { () throws(BlobError) in
      if let direct { try direct.reader.finish() } else { try ring.finish(cancel) }
    }
  }

  private func waiting<Result>(_ body: () throws(BlobError) -> Result) throws(BlobError) -> Result {
    try cancel.whileWaiting(
      wakeUp: { [ring, stop] in
        stop.cancel()
        ring.wake()
      }, body)
  }
}

/// Measures how fast a source has been recently.
private struct ReadPace {
  /// The minimum speed in bytes per second.
  let limit: Int64
  private(set) var offset: Int64
  private(set) var isSlow = false
  private var count: Int64 = 0
  private var time = Duration.zero

  init(limit: Int64, offset: Int64) {
    self.limit = limit
    self.offset = offset
  }

  mutating func note(_ bytes: Int, in duration: Duration) {
    offset += Int64(bytes)
    count += Int64(bytes)
    time += duration
    isSlow = time > .seconds(Double(count) / Double(limit)) + Self.pardon
    if count >= Self.window { (count, time) = (0, .zero) }
  }

  /// On a busy machine a thread may wait for a processor, which says nothing about the source's speed.
  private static let pardon = Duration.milliseconds(25)
  private static let window: Int64 = 8 << 20
}
