/// Requests that went with one width, until there are enough to tell how fast that is.
struct ThroughputSample: Sendable {
  /// Those that began before this went with another width; nil: nothing has arrived yet.
  private let since: Duration?
  private var requests = 0
  private var bytes = 0.0
  /// Seconds that they took, all together.
  private var busy = 0.0
  /// Sums over them: how many were under way, and how many were waited for.
  private var (active, wanted) = (0, 0)

  /// What a request costs besides its body, in bytes.
  private static let overhead = 16_384.0
  private static let shortest = Duration.milliseconds(50)
  private static let longest = Duration.seconds(5)

  init(from since: Duration? = nil) { self.since = since }

  var isOpen: Bool { since != nil }

  mutating func add(_ bytes: Int64, from began: Duration, to now: Duration, active: Int, isWanted: Bool) {
    guard let since, began >= since else { return }
    requests += 1
    self.bytes += Double(bytes) + Self.overhead
    busy += (now - began) / .seconds(1)
    self.active += active
    if isWanted { wanted += 1 }
  }

  /// Roughly: to tell twice from once; else to tell one part in a hundred, or as near to that as can be waited for.
  func isEnough(for width: Int, roughly: Bool, at now: Duration) -> Bool {
    guard let since, requests >= max(16, 2 * width) else { return false }
    if roughly { return now - since >= Self.shortest }
    return requests >= max(100, 4 * width) && now - since >= Self.shortest * 2 || now - since >= Self.longest
  }

  /// Seconds that one took.
  var duration: Double { busy / Double(max(1, requests)) }

  /// Bytes a second, by Little's law, which does not mind that answers come in bursts.
  var rate: Double { Double(active) / Double(max(1, requests)) * bytes / max(busy, 1e-9) }

  /// Mostly, another request waited.
  var isWanted: Bool { wanted * 2 > requests }
}
