import Foundation

/// Delivers a stream's events to its delegate: each event is pending at most once, they are delivered in the order in
/// which they occur, and each in a separate iteration of the run loop.
final class StreamEvents: @unchecked Sendable {
  // `lock` guards everything but `bell`, which has its own lock, and `holds`, which the stream's end guards.
  private let lock = NSLock()
  private var pending: Stream.Event = []
  private var teller = SingleDelivery()
  private weak var owner: Stream?
  private weak var listener: (any StreamDelegate)?
  private var bell: RunLoopSignal!
  private let holds: (Stream.Event) -> Bool

  /// `holds` is called on any thread, just before an event is delivered, and returns whether the event is still true.
  init(_ holds: @escaping (Stream.Event) -> Bool) {
    self.holds = holds
    bell = RunLoopSignal { [weak self] in self?.deliver() }
  }

  /// The stream whose events are delivered.
  var stream: Stream? {
    get { lock.withLock { owner } }
    set { lock.withLock { owner = newValue } }
  }

  /// Setting a delegate drops events that are pending in a run loop for the previous delegate.
  var delegate: (any StreamDelegate)? {
    get { lock.withLock { listener } }
    set {
      let isHung = bell.isHung
      lock.withLock {
        listener = newValue
        if newValue != nil && isHung { pending = [] }
      }
    }
  }

  var isScheduled: Bool { bell.isHung }

  func schedule(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    bell.hang(in: loop, forMode: mode)
    // The signal may have been sent before any run loop could receive it.
    if lock.withLock({ !pending.isEmpty }) { bell.ring() }
  }

  func remove(_ loop: RunLoop, _ mode: RunLoop.Mode) { bell.remove(from: loop, forMode: mode) }

  func tell(_ event: Stream.Event) {
    let isNew = lock.withLock { pending.insert(event).inserted }
    if isNew { bell.ring() }
  }

  /// Removes a pending event that is no longer true.
  func withdraw(_ event: Stream.Event) { lock.withLock { _ = pending.remove(event) } }

  /// No event is delivered any more.
  func retire() {
    lock.withLock { pending = [] }
    bell.invalidate()
  }

  private func deliver() {
    guard let (event, stream, delegate) = next() else {
      if !bell.isHere { bell.ring() }
      return
    }
    // A stream that is its own delegate does not receive events.
    if let delegate, delegate !== stream, holds(event) { delegate.hear(event, of: stream) }
    let hasMore = lock.withLock {
      teller.end()
      return !pending.isEmpty
    }
    if hasMore { bell.ring() }
  }

  private func next() -> (Stream.Event, Stream, (any StreamDelegate)?)? {
    lock.withLock {
      let order: [Stream.Event] = [
        .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
      ]
      guard let event = order.first(where: pending.contains), let owner, bell.isHere, teller.begin()
      else { return nil }
      pending.remove(event)
      return (event, owner, listener)
    }
  }
}
