import Synchronization

/// A bound on bytes per second, shared by everything that should hold it together.
///
/// A token bucket of a tenth of a second: after a pause no more than that is let through at once. Waiting readers are
/// served in the order they came.
public final class RateLimiter: Sendable {
  public let bytesPerSecond: Int64
  private let clock: any BlockingClock
  /// When the bytes let through so far have been paid for, in nanoseconds of the clock.
  private let paid = Mutex(Int64.min / 2)

  private static let second: Int64 = 1_000_000_000
  private static let burst = second / 10

  /// `bytesPerSecond` is at least 1.
  public convenience init(bytesPerSecond: Int64) {
    self.init(bytesPerSecond: bytesPerSecond, clock: MonotonicClock())
  }

  package init(bytesPerSecond: Int64, clock: any BlockingClock) {
    precondition(bytesPerSecond > 0)
    self.bytesPerSecond = bytesPerSecond
    self.clock = clock
  }

  /// Waits until bytes may pass, and says how many: at least 1, at most `wanted` or a tenth of a second's worth. What
  /// was not used is to be given back. Blocks; throws `.cancelled`.
  package func take(upTo wanted: Int, _ cancel: Cancellation) throws(BlobError) -> Int {
    let count = Int(min(Int64(wanted), max(1, bytesPerSecond / 10)))
    let now = clock.now.nanoseconds
    let turn = paid.withLock { paid in
      let turn = max(paid, now - Self.burst)
      // Rounded up here and down in `giveBack`, so that many small reads cannot slip through for nothing.
      let (whole, rest) = time(for: count)
      paid = turn + whole + (rest > 0 ? 1 : 0)
      return turn
    }
    do {
      if turn > now { try clock.sleep(.nanoseconds(turn - now), cancel, "wait for the rate limit") }
    } catch {
      giveBack(count)
      throw error
    }
    return count
  }

  /// Returns what `take` granted and the reader did not need.
  package func giveBack(_ count: Int) {
    paid.withLock { $0 -= time(for: count).quotient }
  }

  /// Nanoseconds that `count` bytes take, and what the division leaves.
  private func time(for count: Int) -> (quotient: Int64, remainder: Int64) {
    bytesPerSecond.dividingFullWidth(Int64(count).multipliedFullWidth(by: Self.second))
  }
}

extension Duration {
  /// Whole nanoseconds; those of 292 years for any longer span.
  package var nanoseconds: Int64 {
    components.seconds.multipliedClamped(by: 1_000_000_000).addingClamped(components.attoseconds / 1_000_000_000)
  }
}
