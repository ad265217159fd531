/// A source that is read before its bytes are wanted, on a thread of its own, up to a bound: while a part is on its way
/// the next bytes are fetched, so that a slow source and a slow link do not wait for each other in turn.
///
/// For sources that can be opened at any byte. A sequential one is handed through as it is: what was read ahead of a
/// reader that is dropped would be lost.
public struct ReadAheadSource: BlobSource {
  private let source: any BlobSource
  private let capacity: Int
  private let limit: Int64?

  /// Each reader holds up to `capacity` bytes that nobody has asked for yet.
  ///
  /// - `bytesPerSecond`: reading ahead begins once the source turns out to give fewer; until then it is read as it is,
  ///   by who wants the bytes, which for a quick source costs less than another thread and one more copy. nil: at once.
  public init(_ source: any BlobSource, capacity: Int = 1 << 20, ifSlowerThan bytesPerSecond: Int64? = nil) {
    precondition(capacity > 0 && bytesPerSecond ?? 1 > 0)
    self.source = source
    self.capacity = capacity
    limit = bytesPerSecond
  }

  public var access: BlobAccess { source.access }

  /// As the source's, but for `readAhead`, which is 0; a reader that does not read ahead, or not yet, has it.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel).readAhead(0) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if source.access == .sequential { return try source.open(at: offset, cancel) }
    try cancel.check("open a source to be read ahead")
    let reader = ReadAheadReader(cancel, capacity)
    if let limit { try reader.beginDirectly(source, at: offset, limit) } else { try reader.begin(source, at: offset) }
    return reader
  }
}

extension BlobInfo {
  func readAhead(_ bytes: Int) -> BlobInfo {
    var other = self
    other.readAhead = bytes
    return other
  }
}

private final class ReadAheadReader: AheadReader {
  private(set) var info = BlobInfo(length: nil)
  private let cancel: Cancellation
  private let capacity: Int
  /// Ends what the other thread waits for.
  private let stop = Cancellation()
  private let ring = AheadRing()
  /// The source's own reader, while that is quick.
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
    AheadRing.threads.submit { [ring, stop, capacity] in
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

  /// Whether somebody else sees to it.
  private var isReadAhead = false

  func willBeReadAhead() { isReadAhead = true }

  /// From now on the source's reader is the other thread's.
  private func goAhead() {
    let (reader, offset) = (direct!.reader, direct!.pace.offset)
    direct = nil
    info = info.readAhead(0)
    ring.read(reader, at: offset, capacity)
  }

  // What comes is in memory already.
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

/// How quick a source was of late.
private struct ReadPace {
  /// Bytes a second.
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

  /// A thread may have to wait for its turn on a busy machine, which says nothing of the source.
  private static let pardon = Duration.milliseconds(25)
  private static let window: Int64 = 8 << 20
}
