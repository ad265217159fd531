import BlobStreams
import Blobs
import Foundation

/// Checks of the bytes that are read, and of the stream's state.
extension StreamCheck {
  static let reading = [
    StreamCheck("reads of any size give the bytes, and then 0", readsInAnySize),
    StreamCheck("before it is open and after it is closed, a read is -1", readsOnlyWhileOpen),
    StreamCheck("a further open changes nothing", opensOnce),
    StreamCheck("once open() has returned, it is open", in: [.synchronous], isOpenOnceOpened),
    StreamCheck("when it goes, its reader goes", dropsItsReader),
    StreamCheck("without a delegate it is its own", isItsOwnDelegate),
    StreamCheck("it lends what is buffered, and nothing else", lendsItsBuffer),
    StreamCheck("other properties are the source's", asksTheSource),
    StreamCheck("reads of no bytes, or fewer, change nothing", readsNothing),
    StreamCheck("too early is EAGAIN, and neither an end nor an error", in: [.asynchronous], saysTooEarly),
    StreamCheck("no method waits for the source", in: [.asynchronous], neverWaits),
    StreamCheck("a source that asks for it is read in blocks", in: [.synchronous], readsInBlocks),
    StreamCheck("it can be had again, from where it began", canBeHadAgain),
  ]

  private static func readsInAnySize(_ exam: StreamCheckContext) throws {
    for size in [1, 1000, 64 << 10, 1 << 20] {
      let (stream, _) = try exam.openStream()
      let end = min(exam.fixture.length, size == 1 ? 300 : 500_000)
      try exam.compare(stream, to: end, upTo: size)
      guard end == exam.fixture.length else { continue }
      for _ in 0..<3 { try require(try exam.read(stream, size) == [], "a read at the end is not 0") }
      try require(stream.streamStatus == .atEnd && !stream.hasBytesAvailable, "it is not at its end")
      try require(stream.streamError == nil, "the end is an error: \(stream.streamError as Any)")
    }
  }

  private static func readsOnlyWhileOpen(_ exam: StreamCheckContext) throws {
    let (stream, _) = try exam.makeStream()
    try require(stream.streamStatus == .notOpen && !stream.hasBytesAvailable, "it is open")
    try require(stream.readOnce(10) == nil, "a read before open")
    stream.open()
    try exam.awaitSettled(stream)
    try require(stream.readOnce(10) != nil, "a read failed: \(stream.streamError as Any)")
    stream.close()
    try require(stream.readOnce(10) == nil && !stream.hasBytesAvailable, "a read after close")
    try require(stream.streamStatus == .closed && stream.streamError == nil, "closed, it is \(stream.streamStatus)")
    stream.close()
  }

  private static func opensOnce(_ exam: StreamCheckContext) throws {
    let faulty = FaultySource(try exam.fixture.make())
    let (stream, events) = try exam.openStream { _ in faulty }
    for _ in 0..<100 { stream.open() }
    try exam.run("events") { events.events.count >= 2 }
    if exam.fixture.length > 0 { try exam.compare(stream, to: 1) }
    stream.open()
    try exam.compare(stream, from: min(1, exam.fixture.length), to: min(2, exam.fixture.length))
    stream.close()
    stream.open()
    exam.runDry()
    try require(stream.streamStatus == .closed, "opened after close it is \(stream.streamStatus)")
    try require(faulty.openings == 1 && events.count(.openCompleted) == 1, "it was opened \(faulty.openings) times")

    let (failed, _) = try exam.openStream { FaultySource($0, .failOpening(BlobError(.io, "on purpose"), times: 1)) }
    try exam.run("an error") { failed.streamStatus == .error }
    failed.open()
    exam.runDry()
    try require(failed.streamStatus == .error, "an error went away by open()")
  }

  private static func isOpenOnceOpened(_ exam: StreamCheckContext) throws {
    let (stream, _) = try exam.openStream()
    let expected: Stream.Status = exam.isEmpty && exam.fixture.knowsLength ? .atEnd : .open
    try require(stream.streamStatus == expected, "it is \(stream.streamStatus)")
    let (failed, _) = try exam.openStream { FaultySource($0, .failOpening(BlobError(.io, "on purpose"))) }
    try require(failed.streamStatus == .error, "a failed one is \(failed.streamStatus)")
  }

  private static func dropsItsReader(_ exam: StreamCheckContext) throws {
    for closes in [true, false] {
      let tracked = TrackedSource(try exam.fixture.make())
      try autoreleased {
        let (stream, _) = try exam.openStream { _ in tracked }
        _ = try exam.read(stream, 1)
        try require(tracked.readers == 1, "\(tracked.readers) readers while it is open")
        if closes { stream.close() }
      }
      try exam.run("the end of the reader") { tracked.readers == 0 }
    }
  }

  private static func isItsOwnDelegate(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    try require(stream.delegate === events, "the delegate is another")
    stream.delegate = nil
    try require(stream.delegate === stream, "without a delegate it is not its own")
    stream.schedule(in: exam.loop, forMode: .default)
    stream.open()
    try exam.awaitSettled(stream)
    exam.runDry()
    try events.require([], "a delegate that was taken away")
  }

  private static func lendsItsBuffer(_ exam: StreamCheckContext) throws {
    let (stream, _) = try exam.openStream(block: 1000) { PreferringSource(source: $0) }
    var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
    if !exam.isAsynchronous { try require(!stream.getBuffer(&bytes, length: &count), "it lends before it has read") }
    guard exam.fixture.length >= 5000 else { return }
    try exam.compare(stream, to: 10)
    try require(stream.getBuffer(&bytes, length: &count) && count == 990, "it lends \(count) bytes of its block")
    let lent = Array(UnsafeBufferPointer(start: bytes, count: count))
    try require(stream.property(forKey: .fileCurrentOffsetKey) as? Int64 == 10, "lending moved the offset")
    try require(lent == stream.readOnce(990), "other bytes than it lent")
    stream.close()
    try require(!stream.getBuffer(&bytes, length: &count), "it lends after close")
    if exam.isAsynchronous { return }
    let (direct, _) = try exam.openStream { PreferringSource(source: $0, preferredRead: 0) }
    try exam.compare(direct, to: 10)
    try require(!direct.getBuffer(&bytes, length: &count), "it lends where nothing is buffered")
  }

  private static func asksTheSource(_ exam: StreamCheckContext) throws {
    let key = Stream.PropertyKey("checks")
    let (plain, _) = try exam.openStream()
    if !(try exam.fixture.make() is any ConfigurableSource) {
      try require(plain.property(forKey: key) == nil, "a property out of nowhere")
      try require(!plain.setProperty(NSNumber(value: 1), forKey: key), "a property that nobody takes")
    }
    let source = SettableSource(try exam.fixture.make(), key: key)
    let (stream, _) = try exam.openStream { _ in source }
    try require(stream.setProperty(NSNumber(value: 7), forKey: key), "the source was not asked")
    try require(stream.property(forKey: key) as? Int == 7, "the source's answer did not come")
  }

  private static func readsNothing(_ exam: StreamCheckContext) throws {
    let (stream, _) = try exam.openStream()
    try exam.awaitBytes(stream)
    var byte: UInt8 = 0xA5
    try require(stream.read(&byte, maxLength: 0) == 0, "a read of nothing")
    try require(stream.read(&byte, maxLength: -1) == -1, "a read of less than nothing")
    try require(stream.read(&byte, maxLength: .min) == -1 && byte == 0xA5, "a read of far less than nothing")
    try exam.compare(stream, to: min(exam.fixture.length, 10))
    stream.close()
    try require(stream.read(&byte, maxLength: 0) == -1, "a read of nothing after close")
  }

  private static func saysTooEarly(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0 else { return }
    let gate = ThreadGate()
    let (stream, events) = try exam.openStream { GatedSource(source: $0, gate: gate, at: .reading) }
    try exam.run("openCompleted") { events.heard(.openCompleted) }
    for _ in 0..<3 {
      try require(!stream.hasBytesAvailable, "there are bytes already")
      try require(stream.readOnce(10) == nil && stream.streamStatus == .open, "too early it is \(stream.streamStatus)")
      let error = stream.streamError.map { $0 as NSError }
      try require(error?.domain == NSPOSIXErrorDomain && error?.code == Int(EAGAIN), "too early: \(error as Any)")
    }
    try events.require([.openCompleted], "while the source says nothing")
    gate.open()
    try exam.run("bytes") { events.heard(.hasBytesAvailable) }
    try exam.compare(stream, to: 1)
    try require(stream.streamError == nil, "after a success: \(stream.streamError as Any)")
  }

  private static func neverWaits(_ exam: StreamCheckContext) throws {
    let gate = ThreadGate()
    let clock = MonotonicClock()
    var longest = Duration.zero
    func timed(_ work: () -> Void) {
      let start = clock.now
      work()
      longest = max(longest, clock.now - start)
    }
    for place in [GatedSource.Place.opening, .reading] {
      let (stream, _) = try exam.makeStream { GatedSource(source: $0, gate: gate, at: place) }
      var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
      timed { stream.schedule(in: exam.loop, forMode: .default) }
      timed { stream.open() }
      for _ in 0..<20 {
        timed { _ = stream.readOnce(1000) }
        timed { _ = stream.hasBytesAvailable }
        timed { _ = stream.streamStatus }
        timed { _ = stream.streamError }
        timed { _ = stream.getBuffer(&bytes, length: &count) }
        timed { _ = stream.setProperty(NSNumber(value: 0), forKey: .fileCurrentOffsetKey) }
        timed { _ = stream.property(forKey: .fileCurrentOffsetKey) }
        timed { stream.open() }
      }
      timed { stream.remove(from: exam.loop, forMode: .default) }
      timed { stream.close() }
    }
    try require(longest < .seconds(5), "a method took \(longest)")
  }

  private static func readsInBlocks(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length >= 5000 else { return }
    let faulty = FaultySource(PreferringSource(source: try exam.fixture.make()))
    let (stream, _) = try exam.openStream(block: 1000) { _ in faulty }
    try exam.compare(stream, to: 1500, upTo: 7)
    let reads = faulty.reads
    // A block read may return fewer bytes.
    try require(faulty.smallestRead == 1000 && reads < 10, "\(reads) reads, at least \(faulty.smallestRead ?? 0) each")
    guard exam.fixture.access == .random else { return }
    for offset in [1499, 1498, 1499] as [Int64] {
      _ = stream.setProperty(NSNumber(value: offset), forKey: .fileCurrentOffsetKey)
      try exam.compare(stream, from: offset, to: offset + 1)
    }
    try require(faulty.reads == reads && faulty.openings == 1, "seeking inside the block read it again")
    _ = stream.setProperty(NSNumber(value: 2000), forKey: .fileCurrentOffsetKey)
    try require(stream.readOnce(2500)?.isEmpty == false, "a read of more than a block failed")
    try require(faulty.reads == reads + 1, "a read of more than a block did not go straight to the buffer")
  }

  private static func canBeHadAgain(_ exam: StreamCheckContext) throws {
    guard exam.fixture.access == .random else { return }
    let (stream, _) = try exam.makeStream()
    let start = exam.fixture.length / 2
    _ = stream.setProperty(NSNumber(value: start), forKey: .fileCurrentOffsetKey)
    stream.open()
    try exam.compare(stream, from: start, to: min(start + 10, exam.fixture.length))
    guard let copy = stream.copy() as? BlobInputStream else { throw CheckFailure("its copy is no stream") }
    for again in [stream.reopened(), copy] {
      try require(again.streamStatus == .notOpen, "a fresh one is \(again.streamStatus)")
      try require(again.isAsynchronous == stream.isAsynchronous, "it is of another mode")
      again.open()
      try exam.compare(again, from: start, to: min(start + 500, exam.fixture.length))
    }
    try require(stream.reopened(from: -1) == nil, "it begins at byte -1")
    let later = min(start + 300, exam.fixture.length)
    // Each stream is made from the one before it, and all offsets count from where the first one began.
    var last = stream
    for begin in [later, start, later] {
      guard let again = last.reopened(from: begin - start) else { throw CheckFailure("its rest cannot be had") }
      again.open()
      try exam.compare(again, from: begin, to: min(begin + 500, exam.fixture.length))
      last = again
    }
  }
}
