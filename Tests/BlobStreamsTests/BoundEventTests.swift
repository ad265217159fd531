import BlobStreams
import BlobTesting
import Blobs
import Foundation
import Testing

/// The events of both ends of a pair on run loops.
struct BoundEventTests {
  @Test func eachEndOfAPairReportsWhatItCanDo() throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let pair = BoundStreams(capacity: 2)
    let (reading, writing) = (EventLog(), EventLog())
    listen(to: pair, reading, writing, on: thread)
    pair.input.open()
    pair.output.open()
    try until { writing.events == [.openCompleted, .hasSpaceAvailable] && reading.events == [.openCompleted] }
    #expect(!pair.input.hasBytesAvailable, "scheduled, it says whether a read would wait")

    #expect(pair.output.write([1, 2], maxLength: 2) == 2)
    try until { reading.events == [.openCompleted, .hasBytesAvailable] }
    #expect(pair.input.hasBytesAvailable)
    #expect(writing.events.count == 2, "it is full")
    #expect(pair.input.readOnce(1) == [1])
    try until { writing.count(.hasSpaceAvailable) == 2 && reading.count(.hasBytesAvailable) == 2 }
    #expect(pair.input.readOnce(1) == [2])

    pair.output.close()
    try until { reading.heard(.endEncountered) }
    #expect(pair.input.streamStatus == .atEnd)
    usleep(5000)
    #expect(reading.events == [.openCompleted, .hasBytesAvailable, .hasBytesAvailable, .endEncountered])
    #expect(writing.events == [.openCompleted, .hasSpaceAvailable, .hasSpaceAvailable], "nothing after close")
    #expect((reading.entries + writing.entries).allSatisfy { $0.thread === thread.thread && $0.mode == .default })
  }

  @Test(arguments: [1, 10, 1000, 65_536])
  func allArrivesByEventsOnTwoLoops(_ capacity: Int) throws {
    let (first, second) = (LoopThread(), LoopThread())
    defer {
      first.stop()
      second.stop()
    }
    let pattern = PatternSource(length: Int64(min(3000 * capacity, 3_000_000)), seed: 5)
    let pair = BoundStreams(capacity: capacity)
    let (reading, writing) = (EventLog(), EventLog())
    let (sent, found) = (Monitor<Int64>(0), Monitor<(read: Int64, wrong: Bool)>((0, false)))
    writing.react { _, event in
      guard event == .hasSpaceAvailable else { return }
      let offset = sent.update { $0 }
      if offset == pattern.length { return pair.output.close() }
      let bytes = pattern.bytes(at: offset, count: min(2500, Int(pattern.length - offset)))
      let count = pair.output.write(bytes, maxLength: bytes.count)
      sent.update { $0 += Int64(max(0, count)) }
    }
    reading.react { _, event in
      guard event == .hasBytesAvailable, let bytes = pair.input.readOnce(3001) else { return }
      found.update { found in
        found.wrong = found.wrong || bytes != pattern.bytes(at: found.read, count: bytes.count)
        found.read += Int64(bytes.count)
      }
    }
    pair.input.delegate = reading
    pair.output.delegate = writing
    pair.input.schedule(in: first.loop, forMode: .default)
    pair.output.schedule(in: second.loop, forMode: .default)
    pair.output.open()
    pair.input.open()
    try until("the end") { reading.heard(.endEncountered) }
    #expect(found.update { $0 } == (pattern.length, false))
    #expect(reading.entries.allSatisfy { $0.thread === first.thread })
    #expect(writing.entries.allSatisfy { $0.thread === second.thread })
  }

  @Test func anIdleWriterIsInformedThatItsReaderIsGone() throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let pair = open(capacity: 10)
    let (reading, writing) = (EventLog(), EventLog())
    listen(to: pair, reading, writing, on: thread)
    try until { writing.heard(.hasSpaceAvailable) }
    pair.input.fail(BlobError(.cancelled, "given up"))
    try until { writing.heard(.errorOccurred) }
    #expect(pair.output.streamStatus == .error)
    #expect(BlobError(underlying: pair.output.streamError)?.message == "given up")
  }

  @Test func anIdleReaderIsInformedOfTheError() throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let pair = open(capacity: 10)
    let (reading, writing) = (EventLog(), EventLog())
    listen(to: pair, reading, writing, on: thread)
    pair.output.fail(BlobError(.io, "broken"))
    try until { reading.heard(.errorOccurred) }
    #expect(reading.count(.endEncountered) == 0)
    #expect(BlobError(underlying: pair.input.streamError)?.message == "broken")
  }

  @Test func scheduledLaterItLosesNothing() throws {
    let pair = open(capacity: 10)
    let (reading, writing) = (EventLog(), EventLog())
    pair.input.delegate = reading
    pair.output.delegate = writing
    _ = pair.output.write([1], maxLength: 1)
    let thread = LoopThread()
    defer { thread.stop() }
    pair.input.schedule(in: thread.loop, forMode: .default)
    pair.output.schedule(in: thread.loop, forMode: .default)
    try until { reading.events == [.openCompleted, .hasBytesAvailable] }
    try until { writing.events == [.openCompleted, .hasSpaceAvailable] }
    pair.input.remove(from: thread.loop, forMode: .default)
    _ = pair.input.readOnce(1)
    _ = pair.output.write([2], maxLength: 1)
    usleep(5000)
    #expect(reading.events.count == 2, "out of the loop, it tells nothing")
  }

  @Test func closingAndGoingInsideAnEventIsSafe() throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let reading = EventLog()
    let held = Monitor<BoundStreams?>(nil)
    reading.react { stream, event in
      if event == .hasBytesAvailable {
        stream.close()
        held.update { $0 = nil }
      }
    }
    let gone = WeakEnds()
    do {
      let pair = open(capacity: 10)
      gone.set(pair)
      pair.input.delegate = reading
      pair.input.schedule(in: thread.loop, forMode: .default)
      held.update { $0 = pair }
      _ = pair.output.write([1], maxLength: 1)
    }
    try until("their end") { gone.areGone }
    #expect(reading.events == [.openCompleted, .hasBytesAvailable])
  }

  @Test func thousandsAreDroppedWhileScheduled() throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    let events = EventLog()
    let gone = WeakEnds()
    for number in 0..<2000 {
      let pair = open(capacity: 16)
      listen(to: pair, events, events, on: thread)
      if number % 2 == 0 { _ = pair.output.write([1], maxLength: 1) }
      gone.set(pair)
    }
    try until("their end") { gone.areGone }
    // Threads of earlier tests may open descriptors meanwhile.
    try until("as many descriptors as before") {
      (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count).map { $0 <= descriptors } ?? false
    }
  }
}

private func listen(to pair: BoundStreams, _ reading: EventLog, _ writing: EventLog, on thread: LoopThread) {
  pair.input.delegate = reading
  pair.output.delegate = writing
  pair.input.schedule(in: thread.loop, forMode: .default)
  pair.output.schedule(in: thread.loop, forMode: .default)
}

/// Whether streams still exist.
private final class WeakEnds: @unchecked Sendable {
  // Used by one test's thread; the references themselves may become nil on any thread.
  private var ends: [() -> Bool] = []

  func set(_ pair: BoundStreams) {
    let (input, output) = (pair.input, pair.output)
    ends.append { [weak input, weak output] in input == nil && output == nil }
  }

  var areGone: Bool { ends.allSatisfy { $0() } }
}
