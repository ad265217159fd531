import BlobStreams
import Blobs
import Foundation

/// Checks with faulty sources.
extension StreamCheck {
  static let faults = [
    StreamCheck("an error in the middle is an error for good, and no end", failsInTheMiddle),
    StreamCheck("URL loading hears of no state, and of no end, only of failed reads", keepsErrorsFromURLLoading),
    StreamCheck("for a form it is opened elsewhere, and read as for URL loading", in: [.synchronous], opensElsewhere),
    StreamCheck("lost in the middle, it goes on at the same byte", findsItsPlace),
    StreamCheck("lost again and again, it gives up", givesUp),
    StreamCheck("lost and changed, it never mixes", neverMixes),
    StreamCheck("an end that comes early is an error", refusesAnEarlyEnd),
    StreamCheck("a change that shows at the end is an error", refusesAChangedEnd),
    StreamCheck("a source that claims more than it was asked for is an error", refusesTooMuch),
    StreamCheck("closing ends a read that waits", in: [.synchronous], closingEndsARead),
    StreamCheck("closed while it is opened, it stays closed", staysClosed),
    StreamCheck(
      "dropped while the source stalls, it lets go of it", in: [.asynchronous], letsGoOfAStalledSource),
  ]

  /// An offset in the middle, at most 10,000.
  private static func middle(of fixture: SourceFixture) -> Int64 { min(fixture.length / 2, 10_000) }

  private static func failsInTheMiddle(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0 else { return }
    let byte = middle(of: exam.fixture)
    let (stream, events) = try exam.openStream(block: 512) {
      FaultySource($0, .fail(at: byte, BlobError(.io, "on purpose", errno: 5)))
    }
    try exam.compare(stream, to: byte)
    for _ in 0..<3 { try require(try exam.read(stream, 10) == nil, "a failed read is not -1") }
    try exam.requireError(stream, .io, "a failed read")
    try require(stream.streamStatus == .error && stream.hasBytesAvailable, "it looks like an end")
    try require(!stream.setProperty(NSNumber(value: 0), forKey: .fileCurrentOffsetKey), "it can be moved")
    try exam.run("the error") { events.heard(.errorOccurred) }
    exam.runDry()
    try require(events.count(.errorOccurred) == 1 && !events.heard(.endEncountered), "heard \(events.events)")
    stream.close()
    try exam.requireError(stream, .io, "closed after a failed read")
  }

  private static func keepsErrorsFromURLLoading(_ exam: StreamCheckContext) throws {
    for faults: FaultySource.Fault in [
      .failOpening(BlobError(.io, "on purpose")), .fail(at: middle(of: exam.fixture), BlobError(.io, "on purpose")),
    ] {
      // An empty source is never read, so reading cannot fail.
      if exam.isEmpty, case .fail = faults { continue }
      let calls = Monitor(0)
      let (stream, events) = try exam.makeStream { FaultySource($0, faults) }
      stream.reportsErrorsToURLLoading = false
      stream.setClient(StreamClient(everything) { _, _, _ in calls.update { $0 += 1 } })
      stream.schedule(in: exam.loop, forMode: .default)
      stream.open()
      var read: [UInt8]? = []
      repeat { read = try exam.read(stream, 4096) } while read?.isEmpty == false
      try exam.run("the error") { events.heard(.errorOccurred) }
      exam.runDry()
      try require(read == nil && stream.readOnce(10) == nil, "the error looks like an end")
      try require(stream.streamStatus == .open && stream.hasBytesAvailable, "it is \(stream.streamStatus)")
      try exam.requireError(stream, .io, "told to nobody")
      try require(events.count(.errorOccurred) == 1, "heard \(events.events)")
      try require(calls.update { $0 } == 0, "a client was called")
    }
  }

  private static func opensElsewhere(_ exam: StreamCheckContext) throws {
    let gate = ThreadGate()
    let here = Thread.current
    let threads = StreamThreads(2)
    let source = GatedSource(source: try exam.fixture.make(), gate: gate, at: .opening)
    let stream = BlobInputStream.forMultipart(source, openingOn: threads)
    try require(!stream.isAsynchronous && !stream.reportsErrorsToURLLoading, "it is made for something else")
    stream.open()
    try require(stream.streamStatus == .opening && stream.hasBytesAvailable, "it is \(stream.streamStatus)")
    let opener = Monitor<Thread?>(nil)
    gate.open { opener.update { $0 = .current } }
    // The first read waits for the opening; an empty source ends.
    let first = stream.readOnce(1)
    try require(first?.count == (exam.isEmpty ? 0 : 1), "the first read is \(first as Any)")
    try exam.compare(stream, from: min(1, exam.fixture.length), to: min(exam.fixture.length, 100_000))
    try require(opener.update { $0 } !== here, "it was opened here")

    let failing = FaultySource(try exam.fixture.make(), .failOpening(BlobError(.io, "on purpose")))
    let failed = BlobInputStream.forMultipart(failing, openingOn: threads)
    failed.open()
    try require(failed.readOnce(1) == nil && failed.streamStatus == .open, "a failed one is \(failed.streamStatus)")
    try exam.requireError(failed, .io, "opened elsewhere")
  }

  private static func findsItsPlace(_ exam: StreamCheckContext) throws {
    let byte = middle(of: exam.fixture)
    guard exam.fixture.length > 0, exam.fixture.hasValidator else { return }
    let (stream, _) = try exam.openStream(block: 512) {
      FaultySource($0, .invalidate(at: byte, times: 2), .invalidate(at: byte + 1, times: 1))
    }
    try exam.compare(stream, to: min(exam.fixture.length, 100_000))
  }

  private static func givesUp(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0 else { return }
    let byte = middle(of: exam.fixture)
    let faulty = FaultySource(try exam.fixture.make(), .invalidate(at: byte, times: .max))
    let (stream, _) = try exam.openStream(block: 512) { _ in faulty }
    try exam.compare(stream, to: byte)
    try require(try exam.read(stream, 10) == nil, "it goes on")
    try exam.requireError(stream, .invalidated, "lost for good")
    try require(faulty.openings <= 10, "it was opened \(faulty.openings) times")
  }

  private static func neverMixes(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 1, exam.fixture.hasValidator else { return }
    let byte = middle(of: exam.fixture)
    let other = PatternSource(length: exam.fixture.length, seed: 99)
    let (stream, _) = try exam.openStream(block: 512) {
      FaultySource($0, .invalidate(at: byte, times: 1), .replaced(by: other, from: 2))
    }
    try exam.compare(stream, to: byte)
    try require(try exam.read(stream, 10) == nil, "it goes on with other content")
    try exam.requireError(stream, .changed, "another version")
    guard exam.fixture.access == .random, exam.fixture.length >= 100 else { return }
    // The same after seeking outside the current block.
    let (sought, _) = try exam.openStream(block: 10) {
      FaultySource(PreferringSource(source: $0), .replaced(by: other, from: 2))
    }
    try exam.compare(sought, to: 50, upTo: 7)
    _ = sought.setProperty(NSNumber(value: 0), forKey: .fileCurrentOffsetKey)
    try require(try exam.read(sought, 10) == nil, "it goes on with other content")
    try exam.requireError(sought, .changed, "another version")
  }

  private static func refusesAnEarlyEnd(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0, exam.fixture.knowsLength else { return }
    let byte = middle(of: exam.fixture)
    let (stream, events) = try exam.openStream(block: 512) { FaultySource($0, .truncate(at: byte)) }
    try exam.compare(stream, to: byte)
    try require(try exam.read(stream, 10) == nil, "an early end looks like the end")
    try exam.requireError(stream, .truncated, "an early end")
    exam.runDry()
    try require(!events.heard(.endEncountered), "heard \(events.events)")
  }

  private static func refusesAChangedEnd(_ exam: StreamCheckContext) throws {
    guard 1...1_000_000 ~= exam.fixture.length else { return }
    let (stream, _) = try exam.openStream { FaultySource($0, .changedAtEnd) }
    var read: [UInt8]? = []
    repeat { read = try exam.read(stream, 64 << 10) } while read?.isEmpty == false
    try require(read == nil, "a changed blob came to its end")
    try exam.requireError(stream, .changed, "changed at the end")
  }

  private static func refusesTooMuch(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0 else { return }
    for claim in [Int.max, 1 << 40, -1, .min] {
      let (stream, _) = try exam.openStream { OvercountingSource(source: $0, claim: claim) }
      try require(try exam.read(stream, 10) == nil, "a claim of \(claim) bytes was believed")
      try exam.requireError(stream, .io, "a claim of \(claim) bytes")
    }
  }

  private static func closingEndsARead(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0 else { return }
    for place in [GatedSource.Place.opening, .reading] {
      // The shortest of several times, so that a busy machine is not mistaken for a slow stream.
      var quickest = try timeToEndARead(exam, place)
      for _ in 0..<9 where quickest >= .milliseconds(100) { quickest = min(quickest, try timeToEndARead(exam, place)) }
      try require(quickest < .milliseconds(100), "it took \(quickest)")
    }
  }

  private static func timeToEndARead(_ exam: StreamCheckContext, _ place: GatedSource.Place) throws -> Duration {
    let gate = ThreadGate()
    let (stream, _) = try exam.makeStream { GatedSource(source: $0, gate: gate, at: place) }
    let owner = Owner()
    owner.stream = stream
    let result = Monitor<Int?>(nil)
    SystemThread.start("reader") {
      owner.stream!.open()
      var byte: UInt8 = 0
      let count = owner.stream!.read(&byte, maxLength: 1)
      result.update { $0 = count }
    }
    try require(gate.awaitVisitor(), "nobody waits for the source")
    let clock = MonotonicClock()
    let start = clock.now
    stream.close()
    let count = result.wait(atMost: .seconds(10)) { $0 }
    let time = clock.now - start
    try require(count == -1, "closed, the read gave \(count as Any)")
    try require(stream.streamStatus == .closed, "closed, it is \(stream.streamStatus)")
    return time
  }

  private static func staysClosed(_ exam: StreamCheckContext) throws {
    let gate = ThreadGate()
    let tracked = TrackedSource(try exam.fixture.make())
    let stream: BlobInputStream
    let source = GatedSource(source: tracked, gate: gate, at: .opening)
    if exam.isAsynchronous {
      stream = BlobInputStream(source, asynchronous: true)
    } else {
      stream = BlobInputStream.forMultipart(source)
    }
    let events = exam.makeLog()
    stream.delegate = events
    stream.schedule(in: exam.loop, forMode: .default)
    stream.open()
    try require(gate.awaitVisitor(), "nobody opens the source")
    stream.close()
    gate.open()
    exam.runDry()
    try events.require([], "closed while it was opened")
    try require(stream.streamStatus == .closed, "it is \(stream.streamStatus)")
    try exam.run("the end of the reader") { tracked.readers == 0 }
  }

  private static func letsGoOfAStalledSource(_ exam: StreamCheckContext) throws {
    guard exam.fixture.length > 0 else { return }
    let gate = ThreadGate()
    let tracked = TrackedSource(try exam.fixture.make())
    try autoreleased {
      let (stream, _) = try exam.openStream { _ in GatedSource(source: tracked, gate: gate, at: .reading) }
      try require(gate.awaitVisitor() && !stream.hasBytesAvailable, "nobody reads the source")
    }
    try exam.run("the end of the reader") { tracked.readers == 0 }
  }

  static let everything: Stream.Event = [.openCompleted, .hasBytesAvailable, .errorOccurred, .endEncountered]
}
