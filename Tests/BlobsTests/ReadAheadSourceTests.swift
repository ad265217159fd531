import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

struct ReadAheadSourceTests {
  private let pattern = PatternSource(length: 3_000_000)

  /// While the consumer is busy, the next bytes are read, up to the limit of the buffer.
  @Test func bytesAreReadAheadUpToTheCapacityWhileTheConsumerIsBusy() throws {
    let counting = CountingSource(pattern)
    let source = ReadAheadSource(counting, capacity: 1_000_000)
    let reader = try source.open(at: 0, Cancellation())
    waitUntil("it has read as much as it may") { counting.count >= 1_000_000 }
    #expect(counting.count == 1_000_000)
    let read = try readNext(reader, 300_000)
    waitUntil("it has read on") { counting.count >= 1_000_000 + Int64(read.count) }
    #expect(counting.count == 1_000_000 + Int64(read.count))
    var all = read
    while case let more = try readNext(reader, 100_000), !more.isEmpty { all += more }
    let isWhole = all == pattern.bytes(count: 3_000_000)
    #expect(isWhole)
    try reader.finish()
  }

  /// A fast source is read on demand. A source that becomes slow is read ahead from there on, with the same reader.
  @Test func onlyASlowSourceIsReadAhead() throws {
    let counting = CountingSource(pattern)
    let quick = try ReadAheadSource(counting, capacity: 1_000_000, ifSlowerThan: 1).open(at: 0, Cancellation())
    #expect(counting.count == 0)
    #expect(try readNext(quick, 100_000) == pattern.bytes(count: 100_000))
    #expect(counting.count == 100_000)
    try quick.finish()

    let slow = CountingSource(ThrottledSource(pattern, RateLimiter(bytesPerSecond: 1_000_000)))
    let reader = try ReadAheadSource(slow, capacity: 200_000, ifSlowerThan: 1 << 40).open(at: 5, Cancellation())
    var all: [UInt8] = []
    while all.count < 400_000 { all += try readNext(reader, 50_000) }
    let wanted = Int64(all.count) + 200_000
    waitUntil("it has read as much as it may") { slow.count == wanted }
    #expect(all == pattern.bytes(at: 5, count: all.count))
    try reader.finish()
  }

  /// Another wrapper already reads the source ahead.
  @Test func aSourceThatReadsAheadIsNotReadAheadAgain() throws {
    var info = pattern.info
    info.readAhead = 100_000
    let slow = CountingSource(ThrottledSource(AskingSource(pattern, info), RateLimiter(bytesPerSecond: 2_000_000)))
    let slice = BlobSlice(ReadAheadSource(slow, capacity: 200_000, ifSlowerThan: 1 << 40))
    let reader = try slice.open(Cancellation())
    #expect(reader.info.readAhead == 100_000)
    (reader as? any ReadAheadAware)?.willBeReadAhead()
    var all: [UInt8] = []
    while all.count < 400_000 { all += try readNext(reader, 50_000) }
    try MonotonicClock().sleep(.milliseconds(100), Cancellation(), "see whether it reads on")
    #expect(slow.count == Int64(all.count))
    #expect(all == pattern.bytes(count: all.count))
  }

  @Test func aReaderOfAQuickSourceIsCancelledWhereItWaits() throws {
    let ended = Ended()
    let cancel = Cancellation()
    let reader = try ReadAheadSource(StalledSource(ended), ifSlowerThan: 1).open(at: 0, cancel)
    #expect(try readNext(reader, 1).count == 1)
    SystemThread.start("test-cancel") { cancel.cancel() }
    let error = failure { () throws(BlobError) in _ = try readNext(reader, 1) }
    #expect(error?.code == .cancelled)
  }

  @Test func errorsComeAfterTheBytesBeforeThem() throws {
    let source = ReadAheadSource(FaultySource(pattern, .fail(at: 200_000, BlobError(.io, "broken"))))
    let reader = try source.open(at: 0, Cancellation())
    var all: [UInt8] = []
    let error = failure { () throws(BlobError) in
      while case let more = try readNext(reader, 50_000), !more.isEmpty { all += more }
    }
    #expect(error?.message == "broken" && all.count == 200_000)
  }

  /// The check at the end of a part uses a reader that is already further on.
  @Test func aChangeIsNoticedWhereAPartEnds() throws {
    let file = try TemporaryFile(pattern.bytes(count: 500_000))
    let reader = try BlobSlice(ReadAheadSource(file.source, capacity: 200_000), length: 100_000).open(Cancellation())
    _ = try readNext(reader, 50_000)
    try file.overwrite([1], at: 10)
    let error = failure { () throws(BlobError) in
      while case let more = try readNext(reader, 50_000), !more.isEmpty {}
    }
    #expect(error?.code == .changed)
  }

  @Test func aReaderThatIsDroppedEndsWhatItWaitedFor() throws {
    let ended = Ended()
    do {
      let source = ReadAheadSource(StalledSource(ended))
      let reader = try source.open(at: 0, Cancellation())
      #expect(try readNext(reader, 1).count == 1)
    }
    waitUntil("the source's reader is gone") { ended.value }
  }

  @Test func aSequentialSourceLosesNothing() throws {
    let pipe = BlobPipe(capacity: 100)
    let source = ReadAheadSource(PipeSource(pipe))
    try [UInt8](1...50).withUnsafeBytes { try pipe.write($0) }
    pipe.finish()
    #expect(try readNext(source.open(at: 0, Cancellation()), 10) == Array(1...10))
    #expect(try readNext(source.open(at: 10, Cancellation()), 100) == Array(11...50))
  }

  private func waitUntil(_ what: String, _ condition: () -> Bool) {
    let limit = ContinuousClock.now + .seconds(60)
    while !condition() && ContinuousClock.now < limit {
      try? MonotonicClock().sleep(.milliseconds(1), Cancellation(), what)
    }
    #expect(condition(), "\(what)")
  }
}

/// A source that asks to be read ahead.
private struct AskingSource: BlobSource {
  let source: PatternSource
  let info: BlobInfo
  init(_ source: PatternSource, _ info: BlobInfo) { (self.source, self.info) = (source, info) }
  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) -> BlobInfo { info }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(info, try source.open(at: offset, cancel))
  }

  private final class Reader: BlobReader {
    let info: BlobInfo
    let reader: any BlobReader
    init(_ info: BlobInfo, _ reader: any BlobReader) { (self.info, self.reader) = (info, reader) }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}

private final class Ended: Sendable {
  private let state = Atomic(false)
  var value: Bool { state.load(ordering: .acquiring) }
  func set() { state.store(true, ordering: .releasing) }
}

/// Returns one byte, then blocks until it is cancelled.
private struct StalledSource: BlobSource {
  let ended: Ended
  init(_ ended: Ended) { self.ended = ended }
  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) -> BlobInfo { BlobInfo(length: 10) }
  func open(at offset: Int64, _ cancel: Cancellation) -> any BlobReader { Reader(ended, cancel) }

  final class Reader: BlobReader {
    let info = BlobInfo(length: 10)
    private let ended: Ended
    private let cancel: Cancellation
    private var hasGiven = false

    init(_ ended: Ended, _ cancel: Cancellation) {
      self.ended = ended
      self.cancel = cancel
    }

    deinit { ended.set() }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      if hasGiven { try MonotonicClock().sleep(.seconds(600), cancel, "stall") }
      hasGiven = true
      return 1
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() {}
  }
}
