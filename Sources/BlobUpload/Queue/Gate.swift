import Synchronization

/// Limits the number of tasks that run a body at the same time.
final class Gate: Sendable {
  private struct State {
    /// Free places. Negative while more tasks run than `width` allows, after the width was reduced.
    var free: Int
    var width: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }
  private let state: Mutex<State>

  init(_ width: Int) { state = Mutex(State(free: width, width: width)) }

  /// Runs `body` once a place is free, as `enter` says.
  func pass<Result, Failure: Error>(
    _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    await enter()
    defer { leave() }
    return try await body()
  }

  /// Waits until a place is free. Each call needs a call of `leave`. Tasks enter in the order of their calls. Waiting ignores
  /// cancellation: once everything is cancelled, the running tasks end soon and free their places.
  func enter() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        if state.free > 0 {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  /// Changes the number of tasks that may run at the same time. Tasks that already run continue.
  func widen(to width: Int) {
    let next = state.withLock { state in
      state.free += width - state.width
      state.width = width
      let count = max(0, min(state.free, state.waiting.count))
      state.free -= count
      defer { state.waiting.removeFirst(count) }
      return Array(state.waiting[..<count])
    }
    for waiter in next { waiter.resume() }
  }

  func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if state.waiting.isEmpty || state.free < 0 {
        state.free += 1
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
