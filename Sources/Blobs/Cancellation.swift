import Synchronization

/// Asks blocking work on other threads to stop. Unlike readers, it may be shared between threads.
///
/// A waiting thread registers a wake-up. Cancelling is final, and may be done from any thread, any number of times.
public final class Cancellation: Sendable {
  private struct State {
    var cancelled = false
    var next = 0
    var wakeUps: [Int: @Sendable () -> Void] = [:]
  }
  private let state = Mutex(State())

  /// Creates an object that is not cancelled. Each piece of work gets its own one.
  public init() {}

  /// Whether `cancel` was called. It never becomes false again.
  public var isCancelled: Bool { state.withLock { $0.cancelled } }

  /// Stops the work and runs every wake-up once, on this thread.
  public func cancel() {
    let wakeUps = state.withLock { state in
      state.cancelled = true
      defer { state.wakeUps = [:] }
      return state.wakeUps
    }
    for wakeUp in wakeUps.values { wakeUp() }
  }

  /// Throws `.cancelled` once `cancel()` was called. The message names `operation`.
  public func check(_ operation: @autoclosure () -> String) throws(BlobError) {
    if isCancelled { throw BlobError(.cancelled, "\(operation()): cancelled") }
  }

  /// Runs `body` with `wakeUp` registered. Cancelling calls `wakeUp` on the cancelling thread; if already cancelled,
  /// this method calls it at once. `wakeUp` must be short and must retain what it uses: it may still run just after
  /// this method has returned.
  public func whileWaiting<Result, Failure>(
    wakeUp: @escaping @Sendable () -> Void, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let token: Int? = state.withLock { state in
      if state.cancelled { return nil }
      state.next += 1
      state.wakeUps[state.next] = wakeUp
      return state.next
    }
    if token == nil { wakeUp() }
    defer { if let token { state.withLock { _ = $0.wakeUps.removeValue(forKey: token) } } }
    return try body()
  }
}
