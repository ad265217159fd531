/// How many parts of a file go at once: more for as long as more arrives.
///
/// Measured in whole parts, since what is handed to a connection has not arrived yet.
struct PartWidth: Sendable {
  private(set) var width: Int
  private let most: Int
  /// Bytes a second with the last width.
  private var best = 0.0
  private var bytes: Int64 = 0
  private var parts = 0
  private var since: ContinuousClock.Instant

  /// `most` at once at the most; with `fixed`, from the beginning.
  init(most: Int, fixed: Bool = false, at now: ContinuousClock.Instant = .now) {
    self.most = most
    width = fixed ? most : min(most, 4)
    since = now
  }

  /// A part of so many bytes has arrived. Once all that were under way have, twice as many go if that was worth it.
  mutating func arrived(_ count: Int64, at now: ContinuousClock.Instant = .now) {
    (bytes, parts) = (bytes + count, parts + 1)
    if width == most || parts < width { return }
    let seconds = since.duration(to: now) / .seconds(1)
    let rate = Double(bytes) / max(seconds, 0.001)
    if rate > best * 1.25 { width = min(most, width * 2) }
    best = max(best, rate)
    (bytes, parts, since) = (0, 0, now)
  }
}
