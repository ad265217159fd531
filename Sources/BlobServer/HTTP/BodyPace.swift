/// Decides how many bytes of a body must have arrived before a connection reads them.
///
/// A body over a slow link arrives in packets, a fast one in what the client writes at once, and waking up for each of them
/// costs more than receiving it. But while
/// nobody reads, the system acknowledges a lone packet only after 40 ms, and a client with a small send buffer waits for
/// that. So waiting for more is tried, and given up for a while where the bytes come more slowly with it.
struct BodyPace {
  private enum Phase {
    /// Each piece is read at once.
    case measuring
    /// Many bytes are waited for. `rate`: bytes per second before that.
    case waiting(rate: Double)
    /// Each piece is read at once, because waiting made the body slower.
    case resting(until: ContinuousClock.Instant)
  }
  private var phase = Phase.measuring
  /// The sample that is being taken.
  private var start: ContinuousClock.Instant?
  private var bytes = 0
  private var pieces = 0

  static let many: Int32 = 256 << 10
  private static let sample = Duration.milliseconds(300)
  private static let rest = Duration.seconds(30)
  /// Pieces of this size on the average cost little.
  private static let largePiece = 128 << 10
  /// Less of the rate than this counts as slower.
  private static let leastShare = 0.75

  /// The number of bytes to wait for.
  var least: Int32 { if case .waiting = phase { Self.many } else { 1 } }

  /// A body begins. The time since the last one says nothing about the link.
  mutating func bodyBegins() { start = nil }

  /// A piece of `count` bytes was read.
  mutating func came(_ count: Int, at now: ContinuousClock.Instant) {
    guard let start else { return begin(at: now) }
    bytes += count
    pieces += 1
    let time = now - start
    if time < Self.sample { return }
    let rate = Double(bytes) / (time / .seconds(1))
    switch phase {
    case .measuring: if bytes / pieces < Self.largePiece { phase = .waiting(rate: rate) }
    case .waiting(let before): if rate < before * Self.leastShare { phase = .resting(until: now + Self.rest) }
    case .resting(let end): if now >= end { phase = .measuring }
    }
    begin(at: now)
  }

  private mutating func begin(at now: ContinuousClock.Instant) { (start, bytes, pieces) = (now, 0, 0) }
}
