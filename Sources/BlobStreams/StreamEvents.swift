import Foundation

/// A stream's events on their way to its delegate: each is pending once, they come in the order in which they happen, and
/// each in a turn of the run loop of its own.
final class StreamEvents: @unchecked Sendable {
  // `lock` guards all but `bell`, which guards itself, and `holds`, which the stream's end guards.
  private let lock = NSLock()
  private var pending: Stream.Event = []
  private var teller = OneTeller()
  private weak var owner: Stream?
  private weak var listener: (any StreamDelegate)?
  private var bell: RunLoopBell!
  private let holds: (Stream.Event) -> Bool

  /// `holds` is asked, on any thread, whether an event is still true when it is about to be heard.
  init(_ holds: @escaping (Stream.Event) -> Bool) {
    self.holds = holds
    bell = RunLoopBell { [weak self] in self?.deliver() }
  }

  /// The stream whose events these are.
  var stream: Stream? {
    get { lock.withLock { owner } }
    set { lock.withLock { owner = newValue } }
  }

  /// Events that wait in a loop for the one before are not for the new one.
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
    // It may have rung where nobody heard it.
    if lock.withLock({ !pending.isEmpty }) { bell.ring() }
  }

  func remove(_ loop: RunLoop, _ mode: RunLoop.Mode) { bell.remove(from: loop, forMode: mode) }

  func tell(_ event: Stream.Event) {
    let isNew = lock.withLock { pending.insert(event).inserted }
    if isNew { bell.ring() }
  }

  /// It is no longer so.
  func withdraw(_ event: Stream.Event) { lock.withLock { _ = pending.remove(event) } }

  /// Nothing is told any more.
  func retire() {
    lock.withLock { pending = [] }
    bell.invalidate()
  }

  private func deliver() {
    guard let (event, stream, delegate) = next() else {
      if !bell.isHere { bell.ring() }
      return
    }
    // A stream that is its own delegate has nothing to say to itself.
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
