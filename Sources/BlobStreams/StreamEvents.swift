import Foundation

/// Delivers a stream's events to its delegate: each event is pending at most once, they are delivered in the order in
/// which they occur, and each in a separate iteration of the run loop.
final class StreamEvents: @unchecked Sendable {
  // `lock` guards everything but `signal`, which has its own lock, and `holds`, which the stream's end guards.
  private let lock = NSLock()
  private var pending: Stream.Event = []
  private var teller = SingleDelivery()
  private weak var owner: Stream?
  private weak var listener: (any StreamDelegate)?
  private var signal: RunLoopSignal!
  private let holds: (Stream.Event) -> Bool

  /// `holds` is called on any thread, just before an event is delivered, and returns whether the event is still true.
  init(_ holds: @escaping (Stream.Event) -> Bool) {
    self.holds = holds
    signal = RunLoopSignal { [weak self] in self?.deliver() }
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
      let isScheduled = signal.isScheduled
      lock.withLock {
        listener = newValue
        if newValue != nil && isScheduled { pending = [] }
      }
    }
  }

  var isScheduled: Bool { signal.isScheduled }

  func schedule(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    signal.add(in: loop, forMode: mode)
    // The signal may have been sent before any run loop could receive it.
    if lock.withLock({ !pending.isEmpty }) { signal.raise() }
  }

  func remove(_ loop: RunLoop, _ mode: RunLoop.Mode) { signal.remove(from: loop, forMode: mode) }

  func tell(_ event: Stream.Event) {
    let isNew = lock.withLock { pending.insert(event).inserted }
    if isNew { signal.raise() }
  }

  /// Removes a pending event that is no longer true.
  func withdraw(_ event: Stream.Event) { lock.withLock { _ = pending.remove(event) } }

  /// No event is delivered any more.
  func retire() {
    lock.withLock { pending = [] }
    signal.invalidate()
  }

  private func deliver() {
    guard let (event, stream, delegate) = next() else {
      if !signal.isHere { signal.raise() }
      return
    }
    // A stream that is its own delegate does not receive events.
    if let delegate, delegate !== stream, holds(event) { delegate.hear(event, of: stream) }
    let hasMore = lock.withLock {
      teller.end()
      return !pending.isEmpty
    }
    if hasMore { signal.raise() }
  }

  private func next() -> (Stream.Event, Stream, (any StreamDelegate)?)? {
    lock.withLock {
      let order: [Stream.Event] = [
        .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
      ]
      guard let event = order.first(where: pending.contains), let owner, signal.isHere, teller.begin()
      else { return nil }
      pending.remove(event)
      return (event, owner, listener)
    }
  }
}
