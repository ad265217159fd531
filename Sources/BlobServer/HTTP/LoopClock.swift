import BlobHTTP
import Platform

/// The time of an event loop, which is read once for all that happens at about the same time.
struct LoopClock {
  private(set) var now = ContinuousClock.now
  /// When the connections were last checked for timeouts.
  private(set) var swept = ContinuousClock.now
  private let interval: Duration
  private var dated: (second: Int64, text: String?) = (0, nil)

  /// - `interval`: how often connections are checked.
  init(checksEvery interval: Duration) { self.interval = interval }

  mutating func tick() { now = .now }

  var nextSweep: ContinuousClock.Instant { swept + interval }

  mutating func noteSweep() { swept = now }

  /// The value of the `Date` header field.
  mutating func date() -> String? {
    let second = wallClock() / 1_000_000_000
    if second != dated.second { dated = (second, HTTPDate.text(second * 1_000_000_000)) }
    return dated.text
  }
}
