import Synchronization

/// Finds out when the system may suspend the app again after it has woken or launched it for events of background tasks:
/// once all events were delivered and every upload waits for the system again, or has ended.
package final class WakeUp: Sendable {
  private struct State {
    /// Uploads that are doing something, and do not just wait for the system.
    var working = 0
    var hasDeliveredAll = false
    /// The time limit has called a handler before its events were delivered.
    var isLate = false
    var handler: (@Sendable () -> Void)?
    /// Counts handlers, so that a time limit ends only its own.
    var number = 0
  }
  private let state = Mutex(State())

  package init() {}

  func enter() { state.withLock { $0.working += 1 } }

  func leave() {
    state.withLock { state -> (@Sendable () -> Void)? in
      state.working -= 1
      return Self.takeIfQuiet(&state)
    }?()
  }

  func deliveredAll() {
    state.withLock { state -> (@Sendable () -> Void)? in
      // Events that came too late for their handler are not those of the next one.
      state.hasDeliveredAll = !state.isLate
      state.isLate = false
      return Self.takeIfQuiet(&state)
    }?()
  }

  /// Calls `handler` once: when all is quiet, or at the latest after `limit`, because the system terminates an app that
  /// does not answer. An earlier handler that was not called yet is called now.
  func handle(within limit: Duration, _ handler: @escaping @Sendable () -> Void) {
    let (calls, number) = state.withLock { state -> ([@Sendable () -> Void], Int) in
      var calls = [state.handler.take()].compactMap { $0 }
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
        state.isLate = !state.hasDeliveredAll
        state.hasDeliveredAll = false
        return handler
      }?()
    }
  }

  private static func takeIfQuiet(_ state: inout State) -> (@Sendable () -> Void)? {
    guard state.working == 0, state.hasDeliveredAll, let handler = state.handler.take() else { return nil }
    state.hasDeliveredAll = false
    return handler
  }
}
