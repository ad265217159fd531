import Blobs
import Foundation

/// The parts that both ends of a bound pair share: status, error, events, and waiting.
class BoundEnd: @unchecked Sendable {
  // `lock` guards `phase` and `failure`. The ring and the events have locks of their own; `events` is set once.

  enum Phase { case new, open, atEnd, failed, closed }

  let ring: PipeRing
  private(set) var events: StreamEvents!
  /// Ends waits when the stream is closed.
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

  /// Only the first call has an effect.
  func open() {
    guard move(from: .new, to: .open) else { return }
    events.tell(.openCompleted)
    look()
  }

  /// Closes this end; no event follows. Returns false if it was already closed.
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

  /// Reports available bytes or room as an event, or registers itself with the ring to be called again.
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
      // The stream was closed meanwhile; the close caused this error.
      if phase != .open { return false }
      phase = .failed
      failure = error.streamError
      return true
    }
    if isNew { events.tell(.errorOccurred) }
  }

  /// The result of reading or writing `count` bytes when `count` is not positive: it neither waits nor moves the
  /// position.
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

  /// Like `read`, but throws, also `.cancelled`, which leaves the stream unchanged.
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

  /// The readable bytes; nil if there are none yet or `read` would not return any.
  func lend() -> UnsafeRawBufferPointer? {
    guard isOpen, let bytes = try? ring.bytes(), !bytes.isEmpty else { return nil }  // `read` reports the error
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
  /// An end whose reader is already gone.
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
      // If there is room, the next news before a `write` can only be that the reader went away.
      ring.whenWritable(orRoom: !isRoom) { [weak self] in self?.look() }
    } catch {
      fail(error)
    }
  }
}
