import Synchronization

/// Lets a bounded number of tasks through at once.
final class Gate: Sendable {
  private struct State {
    /// Below 0 while more are inside than may be, after it was made narrower.
    var free: Int
    var width: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }
  private let state: Mutex<State>

  init(_ width: Int) { state = Mutex(State(free: width, width: width)) }

  /// Runs `body` once there is room. Tasks enter in the order they came; waiting is not cancelled, since whoever is
  /// inside ends soon when everything is.
  func pass<Result, Failure: Error>(
    _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
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
    defer { leave() }
    return try await body()
  }

  /// From now on as many may be inside; those that are stay.
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

  private func leave() {
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
