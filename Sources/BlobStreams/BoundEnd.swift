import Blobs
import Foundation

/// What both ends of a bound pair have in common: status, error, events, and how they wait.
class BoundEnd: @unchecked Sendable {
  // `lock` guards `phase` and `failure`; the ring and the events guard themselves; `events` is set once.

  enum Phase { case new, open, atEnd, failed, closed }

  let ring: PipeRing
  private(set) var events: StreamEvents!
  /// Ends the waiting when the stream is closed.
  let cancel = Cancellation()
  private let lock = NSLock()
  private var phase = Phase.new
  private var failure: NSError?

  init(_ ring: PipeRing) {
    self.ring = ring
    events = StreamEvents { [weak self] event in self?.holds(event) ?? false }
  }

  var isOpen: Bool { lock.withLock { phase == .open } }
  var error: NSError? { lock.withLock { failure } }

  var status: Stream.Status {
    switch lock.withLock({ phase }) {
    case .new: .notOpen
    case .open: .open
    case .atEnd: .atEnd
    case .failed: .error
    case .closed: .closed
    }
  }

  /// Only the first call does anything.
  func open() {
    guard move(from: .new, to: .open) else { return }
    events.tell(.openCompleted)
    look()
  }

  /// Nothing is told after it. False if it was closed before.
  func shut() -> Bool {
    let before = lock.withLock {
      defer { phase = .closed }
      return phase
    }
    if before == .closed { return false }
    cancel.cancel()
    events.retire()
    return true
  }

  func schedule(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    if status == .closed { return }
    events.schedule(loop, mode)
    look()
  }

  /// Tells what there is, and sees to it that `look` is called when there is more.
  func look() {}

  /// Whether an event is still true.
  func holds(_ event: Stream.Event) -> Bool { true }

  func move(from: Phase, to: Phase) -> Bool {
    lock.withLock {
      if phase != from { return false }
      phase = to
      return true
    }
  }

  func fail(_ error: BlobError) {
    let isNew = lock.withLock {
      // Closed meanwhile: the reason for which the waiting ended.
      if phase != .open { return false }
      phase = .failed
      failure = error.streamError
      return true
    }
    if isNew { events.tell(.errorOccurred) }
  }

  /// Once nothing is to be read or written: it neither waits nor moves.
  func acceptsNothing(_ count: Int) -> Int {
    count == 0 && [.open, .atEnd].contains(lock.withLock { phase }) ? 0 : -1
  }

  func waiting<Result>(_ work: () throws(BlobError) -> Result) throws(BlobError) -> Result {
    try cancel.whileWaiting(wakeUp: ring.wake, work)
  }
}

final class ReadingEnd: BoundEnd, @unchecked Sendable {
  func close(_ error: BlobError? = nil) { if shut() { ring.readerIsGone(error) } }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    do throws(BlobError) {
      return try read(into: buffer, nil)
    } catch {
      fail(error)
      return -1
    }
  }

  /// As `read`, and throws; also `.cancelled`, after which the stream is as it was.
  func read(into buffer: UnsafeMutableRawBufferPointer, _ other: Cancellation?) throws(BlobError) -> Int {
    guard isOpen else {
      if status == .atEnd { return 0 }
      throw BlobError(underlying: error) ?? BlobError(.io, "read from a bound stream that is not open")
    }
    let bytes = if let bytes = try ring.bytes() { bytes } else { try wait(other) }
    if bytes.isEmpty {
      end()
      return 0
    }
    let count = min(bytes.count, buffer.count)
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
    ring.took(count)
    if events.isScheduled {
      events.withdraw(.hasBytesAvailable)
      look()
    }
    return count
  }

  private func wait(_ other: Cancellation?) throws(BlobError) -> UnsafeRawBufferPointer {
    try waiting { () throws(BlobError) in
      guard let other else { return try ring.waitForBytes(cancel) }
      return try other.whileWaiting(wakeUp: ring.wake) { () throws(BlobError) in
        try ring.waitForBytes(cancel, other)
      }
    }
  }

  private func end() {
    if move(from: .open, to: .atEnd) { events.tell(.endEncountered) }
  }

  /// nil where there are none yet, or `read` would not give any.
  func lend() -> UnsafeRawBufferPointer? {
    guard isOpen, let bytes = try? ring.bytes(), !bytes.isEmpty else { return nil }  // `read` meets the error
    return bytes
  }

  var hasBytes: Bool {
    switch status {
    case .error: return true
    case .open: break
    default: return false
    }
    do throws(BlobError) {
      guard let bytes = try ring.bytes() else { return !events.isScheduled }
      return !bytes.isEmpty
    } catch {
      return true
    }
  }

  override func holds(_ event: Stream.Event) -> Bool { event != .hasBytesAvailable || hasBytes }

  override func look() {
    guard isOpen, events.isScheduled else { return }
    do throws(BlobError) {
      guard let bytes = try ring.bytes() else { return ring.whenReadable { [weak self] in self?.look() } }
      if bytes.isEmpty { end() } else { events.tell(.hasBytesAvailable) }
    } catch {
      fail(error)
    }
  }
}

final class WritingEnd: BoundEnd, @unchecked Sendable {
  /// One that nobody reads.
  static var alone: WritingEnd {
    let ring = PipeRing(capacity: 1)
    ring.readerIsGone(BlobError(.io, "write to a stream without a reader"))
    return WritingEnd(ring)
  }

  func close(_ error: BlobError?) { if shut() { ring.end(error) } }

  func write(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard isOpen else { return -1 }
    do throws(BlobError) {
      let room = if let room = try ring.room() { room } else { try wait() }
      let count = min(bytes.count, room.count)
      room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
      ring.wrote(count)
      if events.isScheduled {
        events.withdraw(.hasSpaceAvailable)
        look()
      }
      return count
    } catch {
      fail(error)
      return -1
    }
  }

  private func wait() throws(BlobError) -> UnsafeMutableRawBufferPointer {
    try waiting { () throws(BlobError) in try ring.waitForRoom(cancel) }
  }

  var hasSpace: Bool {
    switch status {
    case .error: return true
    case .open: break
    default: return false
    }
    do throws(BlobError) { return try ring.room() != nil } catch { return true }
  }

  override func holds(_ event: Stream.Event) -> Bool { event != .hasSpaceAvailable || hasSpace }

  override func look() {
    guard isOpen, events.isScheduled else { return }
    do throws(BlobError) {
      let isRoom = try ring.room() != nil
      if isRoom { events.tell(.hasSpaceAvailable) }
      // With room, only that the reader went away is news until the next `write`.
      ring.whenWritable(orRoom: !isRoom) { [weak self] in self?.look() }
    } catch {
      fail(error)
    }
  }
}
