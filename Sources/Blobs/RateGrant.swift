import Synchronization

/// Bytes that a rate limiter has granted to one reader before it reads, so that its thread can do something else until they
/// may pass.
package final class RateGrant: Sendable {
  private struct State {
    /// 0: nothing is granted.
    var count = 0
    /// When the bytes may pass, in nanoseconds of the limiter's clock.
    var turn: Int64 = 0
  }
  private let limiter: RateLimiter
  private let state = Mutex(State())

  package init(_ limiter: RateLimiter) { self.limiter = limiter }

  deinit { limiter.giveBack(state.withLock { $0.count }) }

  /// The time until the reader's next read passes without waiting. Joins the limiter's queue if the reader has not done so
  /// since its last read; `wanted` is the most that the next read will take.
  package func timeLeft(upTo wanted: Int) -> Duration {
    state.withLock { state in
      if state.count == 0 { (state.count, state.turn) = limiter.reserve(upTo: wanted) }
      return .nanoseconds(max(0, state.turn - limiter.now))
    }
  }

  /// The granted bytes, `wanted` at most, which the caller now owns. If `timeLeft` was not called before, waits for the
  /// limiter, as `RateLimiter.take` does.
  package func take(upTo wanted: Int, _ cancel: Cancellation) throws(BlobError) -> Int {
    let granted = state.withLock { state in
      defer { state.count = 0 }
      return state.count
    }
    if granted == 0 { return try limiter.take(upTo: wanted, cancel) }
    if granted > wanted { limiter.giveBack(granted - wanted) }
    return min(granted, wanted)
  }

  /// Returns bytes that `take` granted and the reader did not use.
  func giveBack(_ count: Int) { limiter.giveBack(count) }
}
