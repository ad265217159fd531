/// Statistics of the requests with one width, until they suffice to know its throughput.
struct ThroughputSample: Sendable {
  /// Requests that began earlier ran with another width and are ignored; nil: nothing has been measured yet.
  private let since: Duration?
  private var requests = 0
  private var bytes = 0.0
  /// Sum of the durations, in seconds.
  private var busy = 0.0
  /// Sums over the requests: how many were under way, and for how many another request was in the queue.
  private var (active, wanted) = (0, 0)

  /// Cost of a request besides its body, expressed in bytes.
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

  /// Whether the sample suffices. `roughly`: to distinguish a factor of two; otherwise to distinguish 1 %, or as close
  /// as is possible in 5 seconds.
  func isEnough(for width: Int, roughly: Bool, at now: Duration) -> Bool {
    guard let since, requests >= max(16, 2 * width) else { return false }
    if roughly { return now - since >= Self.shortest }
    return requests >= max(100, 4 * width) && now - since >= Self.shortest * 2 || now - since >= Self.longest
  }

  /// Mean duration of a request, in seconds.
  var duration: Double { busy / Double(max(1, requests)) }

  /// Bytes per second by Little's law, which tolerates responses that arrive in bursts.
  var rate: Double { Double(active) / Double(max(1, requests)) * bytes / max(busy, 1e-9) }

  /// Whether another request was in the queue for more than half of the requests.
  var isWanted: Bool { wanted * 2 > requests }
}
