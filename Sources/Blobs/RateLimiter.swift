import Synchronization

/// A limit on bytes per second, shared by all readers that use the same instance.
///
/// It is a token bucket of a tenth of a second: after a pause, at most that much passes at once. Waiting readers are
/// served in the order in which they called, and one call is granted 64 KiB at most, so that readers with large buffers
/// get no larger share than others.
public final class RateLimiter: Sendable {
  /// The limit that all readers share.
  public let bytesPerSecond: Int64
  private let clock: any BlockingClock
  /// One pause, which begins once `bytes` bytes were granted; nil: there is none.
  private let pause: (bytes: Int64, length: Duration)?
  private struct State {
    /// Time at which the bytes granted so far are within the rate, in nanoseconds of the clock.
    var paid = Int64.min / 2
    /// The bytes that may still be granted before the pause; nil: no pause follows.
    var bytesToPause: Int64?
  }
  private let state: Mutex<State>

  private static let second: Int64 = 1_000_000_000
  private static let burst = second / 10
  /// The most bytes of one call. A worker reads pieces of 64 KiB to 4 MiB, and the reader of the larger pieces would
  /// otherwise get most of the rate.
  private static let largestGrant: Int64 = 64 << 10

  /// `bytesPerSecond` must be at least 1.
  public convenience init(bytesPerSecond: Int64) {
    self.init(bytesPerSecond: bytesPerSecond, clock: MonotonicClock())
  }

  package init(
    bytesPerSecond: Int64, clock: any BlockingClock, pause: (bytes: Int64, length: Duration)? = nil
  ) {
    precondition(bytesPerSecond > 0)
    self.bytesPerSecond = bytesPerSecond
    self.clock = clock
    self.pause = pause
    state = Mutex(State(bytesToPause: pause?.bytes))
  }

  /// Lets the first `bytes` bytes pass, no more for `length`, and then all others.
  package convenience init(pausingAfter bytes: Int64, for length: Duration) {
    self.init(bytesPerSecond: 1 << 40, clock: MonotonicClock(), pause: (bytes, length))
  }

  /// Waits until bytes may pass and returns how many: at least 1, at most `wanted`, 64 KiB, or a tenth of a second's
  /// worth. The caller returns unused bytes with `giveBack`. Blocks; throws `.cancelled`.
  package func take(upTo wanted: Int, _ cancel: Cancellation) throws(BlobError) -> Int {
    let (count, turn) = reserve(upTo: wanted)
    let left = turn - now
    do {
      if left > 0 { try clock.sleep(.nanoseconds(left), cancel, "wait for the rate limit") }
    } catch {
      giveBack(count)
      throw error
    }
    return count
  }

  /// Grants as many bytes as `take`, which may pass at the time `turn`, in nanoseconds of the clock. Does not block.
  func reserve(upTo wanted: Int) -> (count: Int, turn: Int64) {
    let now = now
    return state.withLock { state in
      var count = Int(min(Int64(wanted), Self.largestGrant, max(1, bytesPerSecond / 10)))
      if let left = state.bytesToPause, let pause {
        if left > 0 {
          count = Int(min(Int64(count), left))
          state.bytesToPause = left - Int64(count)
        } else {
          state.bytesToPause = nil
          state.paid = max(state.paid, now.addingClamped(pause.length.nanoseconds))
        }
      }
      let turn = max(state.paid, now - Self.burst)
      // Rounded up here and down in `giveBack`, so that many small reads cannot exceed the rate through rounding.
      let (whole, rest) = time(for: count)
      state.paid = turn + whole + (rest > 0 ? 1 : 0)
      return (count, turn)
    }
  }

  /// Nanoseconds of the clock.
  var now: Int64 { clock.now.nanoseconds }

  /// Returns bytes that `take` granted and the reader did not use.
  package func giveBack(_ count: Int) {
    state.withLock { state in
      state.paid -= time(for: count).quotient
      if let left = state.bytesToPause { state.bytesToPause = left + Int64(count) }
    }
  }

  /// Nanoseconds that `count` bytes take at this rate, and the remainder of the division.
  private func time(for count: Int) -> (quotient: Int64, remainder: Int64) {
    bytesPerSecond.dividingFullWidth(Int64(count).multipliedFullWidth(by: Self.second))
  }
}

extension Duration {
  /// Whole nanoseconds; spans longer than 292 years are clamped to the range of Int64.
  package var nanoseconds: Int64 {
    components.seconds.multipliedClamped(by: 1_000_000_000).addingClamped(components.attoseconds / 1_000_000_000)
  }
}
