import Blobs

/// Runs a check, and throws a `CheckFailure` if it does not end within `limit`: an implementation that hangs must fail
/// its check. The check is then cancelled, and abandoned if it ignores the cancellation.
///
/// A separate thread measures the time, because a check that hangs may block the threads on which tasks run.
func deadline<Result: Sendable>(
  _ limit: Duration, _ what: String, _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  let race = Race<Result>()
  // The task ends with `body`, or the thread below abandons it.
  let work = Task {
    do { race.end(.success(try await body())) } catch { race.end(.failure(error)) }
  }
  SystemThread.start("deadline") {
    if race.hasEnded(within: limit) { return }
    work.cancel()
    race.end(.failure(CheckFailure("\(what) did not end within \(limit)")))
  }
  return try await withTaskCancellationHandler {
    try await race.value()
  } onCancel: {
    work.cancel()
  }
}

/// Holds the first of two results.
private final class Race<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var waiting: CheckedContinuation<Value, any Error>?
  }
  private let state = Monitor(State())

  func end(_ result: Result<Value, any Error>) {
    let waiting = state.update { state -> CheckedContinuation<Value, any Error>? in
      if state.result != nil { return nil }
      state.result = result
      return state.waiting
    }
    waiting?.resume(with: result)
  }

  func hasEnded(within limit: Duration) -> Bool { state.wait(atMost: limit) { $0.result != nil ? true : nil } ?? false }

  func value() async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let result = state.update { state -> Result<Value, any Error>? in
        if state.result == nil { state.waiting = continuation }
        return state.result
      }
      if let result { continuation.resume(with: result) }
    }
  }
}
