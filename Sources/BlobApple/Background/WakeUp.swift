import Synchronization

/// Finds out when the system may suspend the app again after it has woken or launched it for events of background tasks:
/// once all events were delivered and every upload waits for the system again, or has ended.
package final class WakeUp: Sendable {
  private struct State {
    /// Uploads that are doing something, and do not just wait for the system.
    var working = 0
    /// When all events of this wake-up were delivered; nil: they were not.
    var delivered: ContinuousClock.Instant?
    /// The time limit has called a handler before its events were delivered.
    var isLate = false
    var handler: (@Sendable () -> Void)?
    /// Counts handlers, so that a time limit ends only its own.
    var number = 0
  }
  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  /// Events may be delivered before the handler of their wake-up comes, since an app may need time to hand it over. A handler
  /// that comes later than this is that of another wake-up: the events were delivered while the app ran.
  static let handingOver = Duration.seconds(5)

  package init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.now = now }

  func enter() { state.withLock { $0.working += 1 } }

  func leave() {
    state.withLock { state -> (@Sendable () -> Void)? in
      state.working -= 1
      return Self.takeIfQuiet(&state)
    }?()
  }

  func deliveredAll() {
    let now = now()
    state.withLock { state -> (@Sendable () -> Void)? in
      // Events that came too late for their handler are not those of the next one.
      state.delivered = state.isLate ? nil : now
      state.isLate = false
      return Self.takeIfQuiet(&state)
    }?()
  }

  /// Calls `handler` once: when all is quiet, or at the latest after `limit`, because the system terminates an app that
  /// does not answer. An earlier handler that was not called yet is called now.
  func handle(within limit: Duration, _ handler: @escaping @Sendable () -> Void) {
    let now = now()
    let (calls, number) = state.withLock { state -> ([@Sendable () -> Void], Int) in
      var calls: [@Sendable () -> Void] = []
      if let earlier = state.handler.take() {
        calls.append(earlier)
        state.delivered = nil
      }
      if let delivered = state.delivered, now - delivered > Self.handingOver { state.delivered = nil }
      state.handler = handler
      state.isLate = false
      state.number += 1
      if let now = Self.takeIfQuiet(&state) { calls.append(now) }
      return (calls, state.number)
    }
    for call in calls { call() }
    // Unstructured, because the caller is a method of the app's delegate, which must return.
    Task {
      // Nothing cancels this task.
      try? await Task.sleep(for: limit)
      state.withLock { state -> (@Sendable () -> Void)? in
        guard state.number == number, let handler = state.handler.take() else { return nil }
        state.isLate = state.delivered == nil
        state.delivered = nil
        return handler
      }?()
    }
  }

  private static func takeIfQuiet(_ state: inout State) -> (@Sendable () -> Void)? {
    guard state.working == 0, state.delivered != nil, let handler = state.handler.take() else { return nil }
    state.delivered = nil
    return handler
  }
}
