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

  /// As the source's, but for `readAhead`, which is 0.
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

private final class ReadAheadReader: BlobReader {
  private(set) var info = BlobInfo(length: nil)
  private let cancel: Cancellation
  private let capacity: Int
  /// Ends what the other thread waits for.
  private let stop = Cancellation()
  private let ring = AheadRing()
  /// The source's own reader, while that is quick.
  private var direct: (reader: any BlobReader, pace: ReadPace)?

  /// Each reader that is open has one of these.
  private static let threads = BlockingPool("read-ahead", threads: 512, patience: .seconds(5))

  init(_ cancel: Cancellation, _ capacity: Int) {
    self.cancel = cancel
    self.capacity = capacity
  }

  deinit {
    ring.leave()
    stop.cancel()
  }

  func begin(_ source: any BlobSource, at offset: Int64) throws(BlobError) {
    Self.threads.submit { [ring, stop, capacity] in
      ring.serve(capacity) { () throws(BlobError) in (try source.open(at: offset, stop), offset) }
    }
    info = try waiting { () throws(BlobError) in try ring.opened(cancel) }
  }

  func beginDirectly(_ source: any BlobSource, at offset: Int64, _ limit: Int64) throws(BlobError) {
    let reader = try waiting { () throws(BlobError) in try source.open(at: offset, stop) }
    info = reader.info.readAhead(0)
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
    if direct!.pace.isSlow { goAhead() }
    return count
  }

  /// From now on the source's reader is the other thread's.
  private func goAhead() {
    let handed = HandedReader(reader: direct!.reader, offset: direct!.pace.offset)
    direct = nil
    Self.threads.submit { [ring, capacity] in ring.serve(capacity) { (handed.reader, handed.offset) } }
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

/// On its way from one thread to another: who hands it over does not touch it again.
private struct HandedReader: @unchecked Sendable {
  let reader: any BlobReader
  /// Of the next byte it gives.
  let offset: Int64
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

/// The memory between the thread that reads and the one that wants. Each copies outside the lock: the free part is the
/// one's, the filled part the other's.
private final class AheadRing: @unchecked Sendable {
  // `state` says which part of `memory` belongs to whom. It is allocated before `opened` answers, and never again.
  private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private let state = Monitor(State())

  private struct State {
    var start = 0
    var filled = 0
    var opening: Result<BlobInfo, BlobError>?
    /// Nothing more is read: the end, or an error.
    var ending: Result<Void, BlobError>?
    var isAskedToFinish = false
    var finished: Result<Void, BlobError>?
    var isLeft = false
  }

  private enum Work {
    case read(Range<Int>)
    case finish
  }

  deinit { memory.deallocate() }

  func wake() { state.update { _ in } }
  func leave() { state.update { $0.isLeft = true } }

  // MARK: The thread that reads

  /// `begin` gives a reader, and the offset of its next byte.
  func serve(_ capacity: Int, _ begin: () throws(BlobError) -> (any BlobReader, Int64)) {
    do throws(BlobError) {
      let (reader, offset) = try begin()
      let info = reader.info
      let rest = info.length.map { Int(clamping: $0 - offset) } ?? capacity
      // One more than there are, so that the end is found before it is asked for.
      memory = .allocate(byteCount: max(1, min(capacity, rest < capacity ? rest + 1 : capacity)), alignment: 16)
      let piece = max(info.preferredRead, 64 << 10)
      state.update { $0.opening = .success(info.readAhead(0)) }
      while let work = next() { perform(work, reader, upTo: piece) }
    } catch {
      state.update { state in
        if state.opening == nil { state.opening = .failure(error) }
      }
    }
  }

  private func next() -> Work? {
    state.wait { state -> Work?? in
      if state.isLeft { return .some(nil) }
      if state.isAskedToFinish { return .some(.finish) }
      if state.ending != nil || state.filled == memory.count { return nil }
      let first = (state.start + state.filled) % memory.count
      return .some(.read(first..<min(first + memory.count - state.filled, memory.count)))
    }
  }

  private func perform(_ work: Work, _ reader: any BlobReader, upTo piece: Int) {
    switch work {
    case .read(let range):
      do throws(BlobError) {
        let count = try reader.readChecked(into: UnsafeMutableRawBufferPointer(rebasing: memory[range.prefix(piece)]))
        state.update { state in
          state.filled += count
          if count == 0 { state.ending = .success(()) }
        }
      } catch {
        state.update { $0.ending = .failure(error) }
      }
    case .finish:
      // A reader that has thrown is of no use.
      var result = state.update { $0.ending } ?? .success(())
      if case .success = result {
        do throws(BlobError) { try reader.finish() } catch { result = .failure(error) }
      }
      state.update { state in
        state.isAskedToFinish = false
        state.finished = result
      }
    }
  }

  // MARK: The thread that wants

  func opened(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let result = try state.wait { state throws(BlobError) in
      try cancel.check("open a source to be read ahead")
      return state.opening
    }
    return try result.get()
  }

  func take(into buffer: UnsafeMutableRawBufferPointer, _ cancel: Cancellation) throws(BlobError) -> Int {
    let range: Range<Int> = try state.wait { state throws(BlobError) in
      try cancel.check("read a source that is read ahead")
      if state.filled > 0 { return state.start..<min(state.start + min(state.filled, buffer.count), memory.count) }
      guard let ending = state.ending else { return nil }
      try ending.get()
      return 0..<0
    }
    if range.isEmpty { return 0 }
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[range]))
    state.update { state in
      state.start = range.upperBound % memory.count
      state.filled -= range.count
    }
    return range.count
  }

  func finish(_ cancel: Cancellation) throws(BlobError) {
    state.update { state in
      state.finished = nil
      state.isAskedToFinish = true
    }
    let result = try state.wait { state throws(BlobError) in
      try cancel.check("finish a source that is read ahead")
      return state.finished
    }
    try result.get()
  }
}
