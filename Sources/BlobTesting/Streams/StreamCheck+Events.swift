import BlobStreams
import Blobs
import CoreFoundation
import Foundation

/// Checks which events are delivered, when, how often, and in which run loop.
extension StreamCheck {
  static let events = [
    StreamCheck("closed before it is open, it can be opened; closed after, it tells nothing", closesBeforeOpening),
    StreamCheck("open and not read, it tells that once; the loop goes on", tellsOnceWhatIsThere),
    StreamCheck("an empty source is opened, and at its end", tellsTheEndOfNothing),
    StreamCheck("closed at the first bytes, it tells nothing more, and the loop is free", closesInsideAnEvent),
    StreamCheck("not scheduled, it tells nothing", tellsNothingUnscheduled),
    StreamCheck("what waited for another delegate is not for the new one", dropsWhatWaitedForAnother),
    StreamCheck("failing to open, it tells one error", tellsThatItCannotOpen),
    StreamCheck("one byte at a time: an event each", readsByteByByte),
    StreamCheck("opened first and scheduled later elsewhere, it loses nothing", waitsForItsLoop),
    StreamCheck("any number of loops and modes: each event once, where it should be", tellsOnceInManyLoops),
    StreamCheck("dropped while it is scheduled, it is gone", goesWhileScheduled),
    StreamCheck("let go of inside an event, it is gone", goesInsideAnEvent),
    StreamCheck("taken out of a loop during an event, it tells nothing more there", isRemovedDuringAnEvent),
  ]

  /// The events of a stream that is opened and not read.
  private static func atFirst(_ exam: StreamCheckContext) -> [Stream.Event] {
    // Only a read would find the end.
    let endIsHidden = !exam.fixture.knowsLength && !exam.isAsynchronous
    return [.openCompleted, exam.isEmpty && !endIsHidden ? .endEncountered : .hasBytesAvailable]
  }

  private static func closesBeforeOpening(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    stream.schedule(in: exam.loop, forMode: .default)
    stream.close()
    try require(stream.streamStatus == .notOpen, "status \(stream.streamStatus) after a close too early")
    stream.open()
    try exam.run("events") { events.events.count == 2 }
    stream.close()
    try require(stream.streamStatus == .closed, "status \(stream.streamStatus) after close")
    exam.runDry()
    try events.require(atFirst(exam), "opened and closed")
  }

  private static func tellsOnceWhatIsThere(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.openStream()
    try exam.run("events") { events.events.count >= 2 }
    exam.runDry()
    try events.require(atFirst(exam), "opened, scheduled, not read")
    let result = CFRunLoopRunInMode(coreMode(.default), 0, false)
    try require(result == .timedOut, "the loop of Core Foundation ended with \(result)")
    try require(exam.loop.isHeld(in: .default), "the loop had nothing to wait for")
    stream.close()
  }

  private static func tellsTheEndOfNothing(_ exam: StreamCheckContext) throws {
    guard exam.isEmpty else { return }
    let (stream, events) = try exam.openStream()
    try exam.run("an event") { events.events.count == 2 }
    try require(try exam.read(stream, 10) == [], "an empty source gives something")
    try exam.run("the end") { events.heard(.endEncountered) }
    exam.runDry()
    try require(events.count(.openCompleted) == 1 && events.count(.endEncountered) == 1, "heard \(events.events)")
    try require(stream.streamStatus == .atEnd && !stream.hasBytesAvailable, "it is not at its end")
  }

  private static func closesInsideAnEvent(_ exam: StreamCheckContext) throws {
    for mode in [RunLoop.Mode.default, RunLoop.Mode("checks")] {
      let (stream, events) = try exam.makeStream()
      let last = atFirst(exam)[1]
      events.react { stream, event in if event == last { stream.close() } }
      stream.schedule(in: exam.loop, forMode: mode)
      stream.open()
      try exam.run("events", in: mode) { stream.streamStatus == .closed }
      exam.runDry(in: mode)
      try events.require(atFirst(exam), "closed inside the last of these, in \(mode.rawValue)")
      try require(events.entries.allSatisfy { $0.mode == mode }, "an event came in another mode than \(mode.rawValue)")
      try require(!exam.loop.isHeld(in: mode), "the loop is still held")
    }
  }

  private static func tellsNothingUnscheduled(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    stream.open()
    _ = try exam.read(stream, 1)
    exam.runDry()
    try events.require([], "never scheduled")
  }

  private static func dropsWhatWaitedForAnother(_ exam: StreamCheckContext) throws {
    let (stream, first) = try exam.openStream()
    try exam.awaitSettled(stream)
    let second = exam.makeLog()
    stream.delegate = second
    exam.runDry()
    try first.require([], "a delegate that was replaced")
    try second.require([], "a delegate that was set after the events")
    // The new delegate receives later events.
    if exam.isEmpty { return }
    _ = stream.readOnce(1)
    try exam.run("another event") { !second.events.isEmpty }
    stream.close()
  }

  private static func tellsThatItCannotOpen(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.openStream {
      FaultySource($0, .failOpening(BlobError(.permission, "on purpose", errno: 13)))
    }
    try exam.run("an error") { !events.events.isEmpty }
    exam.runDry()
    try events.require([.errorOccurred], "a source that cannot be opened")
    try require(stream.streamStatus == .error && stream.readOnce(10) == nil, "it is not in error")
    try exam.requireError(stream, .permission, "opening failed")
  }

  private static func readsByteByByte(_ exam: StreamCheckContext) throws {
    let count = Int(min(exam.fixture.length, 9))
    guard count > 0 else { return }
    let isAll = exam.fixture.length == count
    let endIsHidden = !exam.fixture.knowsLength && !exam.isAsynchronous
    let (stream, events) = try exam.makeStream()
    let read = Bytes()
    events.react { stream, event in
      guard event == .hasBytesAvailable, isAll || read.bytes.count < count else { return }
      read.append((stream as? BlobInputStream)?.readOnce(1))
    }
    stream.schedule(in: exam.loop, forMode: .default)
    stream.open()
    try exam.run("the bytes and what follows") {
      isAll ? events.heard(.endEncountered) : events.count(.hasBytesAvailable) > count
    }
    exam.runDry()
    let each = [Stream.Event](repeating: .hasBytesAvailable, count: isAll && !endIsHidden ? count : count + 1)
    try events.require([.openCompleted] + each + (isAll ? [.endEncountered] : []), "read byte by byte")
    try require(read.bytes == exam.fixture.expected(0, count), "other bytes: \(read.bytes)")

    let (other, _) = try exam.openStream()
    guard exam.fixture.length <= 1024 else { return }
    try require(try exam.read(other, 1024)?.count == count || count == 9, "a read of 1,024 does not give all \(count)")
    if isAll { try require(try exam.read(other, 1024) == [], "a read at the end is not 0") }
  }

  private static func waitsForItsLoop(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    stream.open()
    try exam.awaitSettled(stream)
    let thread = LoopThread()
    stream.schedule(in: thread.loop, forMode: .default)
    try exam.run("events on another thread") { events.events.count == 2 }
    try events.require(atFirst(exam), "scheduled later")
    try require(events.entries.allSatisfy { $0.thread === thread.thread }, "an event came on another thread")
    stream.close()
    thread.stop()
  }

  private static func tellsOnceInManyLoops(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    let threads = [LoopThread(), LoopThread()]
    let never = RunLoop.Mode("never run")
    for thread in threads {
      for mode in [RunLoop.Mode.default, never] { stream.schedule(in: thread.loop, forMode: mode) }
    }
    stream.schedule(in: exam.loop, forMode: never)
    stream.open()
    try exam.run("events") { events.events.count == 2 }
    // After removal from the first loop, the second still receives events.
    stream.remove(from: threads[0].loop, forMode: .default)
    let before = events.entries.count
    if try exam.fixture.length > 1 && exam.read(stream, 1)?.count == 1 {
      try exam.run("an event in the loop that stayed") { events.entries.count > before }
      try require(events.entries.last?.thread === threads[1].thread, "the loop that was left was told")
    }
    exam.runDry()
    let expected = atFirst(exam) + Array(repeating: .hasBytesAvailable, count: exam.fixture.length > 1 ? 1 : 0)
    try events.require(expected, "in two loops")
    let known = Set(threads.map { ObjectIdentifier($0.thread) })
    for entry in events.entries {
      try require(known.contains(ObjectIdentifier(entry.thread)) && entry.mode == .default, "an event went astray")
    }
    stream.close()
    for thread in threads { thread.stop() }
  }

  private static func goesWhileScheduled(_ exam: StreamCheckContext) throws {
    for reads in [false, true] {
      let gone = WeakStream()
      let events = exam.makeLog()
      try autoreleased {
        let (stream, _) = try exam.openStream()
        stream.delegate = events
        gone.stream = stream
        if reads { _ = try exam.read(stream, 1) }
      }
      try exam.run("its end") { gone.stream == nil }
      let count = events.events.count
      exam.runDry()
      try require(events.events.count == count, "a stream that is gone told \(events.events)")
      try require(!exam.loop.isHeld(in: .default), "the loop is still held")
    }
  }

  private static func goesInsideAnEvent(_ exam: StreamCheckContext) throws {
    let gone = WeakStream()
    let owner = Owner()
    // Breaks the cycle: the log's reaction retains the owner.
    defer { owner.events = nil }
    try autoreleased {
      let (stream, events) = try exam.makeStream()
      gone.stream = stream
      owner.stream = stream
      owner.events = events
      events.react { _, _ in owner.stream = nil }
      stream.schedule(in: exam.loop, forMode: .default)
      stream.open()
    }
    try exam.run("its end") { gone.stream == nil }
    exam.runDry()
    try require(owner.events?.events == [.openCompleted], "heard \(owner.events?.events as Any)")
  }

  private static func isRemovedDuringAnEvent(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    let thread = LoopThread()
    let (heard, removed) = (Monitor(false), Monitor(false))
    events.react { _, _ in
      heard.update { $0 = true }
      _ = removed.wait(atMost: .seconds(30)) { $0 ? true : nil }
    }
    stream.schedule(in: thread.loop, forMode: .default)
    stream.open()
    try require(heard.wait(atMost: .seconds(30)) { $0 ? true : nil } != nil, "no event came")
    stream.remove(from: thread.loop, forMode: .default)
    removed.update { $0 = true }
    exam.runDry()
    try events.require([.openCompleted], "taken out of its loop during this one")
    stream.schedule(in: exam.loop, forMode: .default)
    try exam.run("what waited") { events.events.count == 2 }
    stream.close()
    thread.stop()
  }
}
