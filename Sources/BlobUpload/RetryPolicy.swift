/// How often, and after how long, something is tried again.
///
/// Failures are counted since the last byte that the server acknowledged: a slow but moving upload never runs out.
public struct RetryPolicy: Sendable {
  /// Failures in a row that are forgiven.
  public var retries: Int
  /// The first wait; each further one is twice as long.
  public var first: Duration
  /// The longest wait of our own choosing, and the longest that a server may ask for.
  public var longest: Duration
  /// How long a destination is waited for that was reached before and to which no connection can be made now: a machine
  /// that changes networks, a server that is started again. So is one that has taken something before and answers 502, 503 or
  /// 504 now. The waits are summed up since the last byte that the server acknowledged, and these failures do not count as
  /// `retries`. nil: they count like any other failure.
  public var outage: Duration?

  /// - `retries`: nil stands for 8 failures, and `outage` besides. With a number, every failure counts.
  public init(
    retries: Int? = nil, first: Duration = .milliseconds(250), longest: Duration = .seconds(30),
    outage: Duration? = .seconds(600)
  ) {
    self.retries = retries ?? 8
    self.first = first
    self.longest = longest
    self.outage = retries == nil ? outage : nil
  }

  /// How long to wait after `failures` in a row, the last of them included; nil: give up.
  ///
  /// A wait is spread over its second half, so that many clients do not come back at once.
  public func delay(
    after failures: Int, asked: Duration?, using random: inout some RandomNumberGenerator
  ) -> Duration? {
    if failures > retries { return nil }
    return wait(after: failures, asked: asked, using: &random)
  }

  fileprivate func wait(
    after failures: Int, asked: Duration?, using random: inout some RandomNumberGenerator
  ) -> Duration {
    if let asked { return min(asked, longest) }
    let wait = min(first * (1 << min(failures - 1, 20)), longest)
    return wait * Double.random(in: 0.5...1, using: &random)
  }
}

/// Failures in a row, since something last moved.
struct FailureCount: Sendable {
  /// All of them: each wait is longer than the one before.
  private(set) var total = 0
  /// Those for which `RetryPolicy.retries` is the limit.
  private var limited = 0
  /// How long an outage has been waited for by now.
  private var waited = Duration.zero

  /// Counts a failure, and says how long to wait after it; nil: give up. `isOutage`: a destination that was there before is
  /// away. `least`: failures that are known from elsewhere.
  mutating func delay(
    _ policy: RetryPolicy, isOutage: Bool, asked: Duration?, atLeast least: Int = 0,
    using random: inout some RandomNumberGenerator
  ) -> Duration? {
    total += 1
    guard isOutage, let outage = policy.outage else {
      limited = max(limited + 1, least)
      return policy.delay(after: limited, asked: asked, using: &random)
    }
    if waited >= outage { return nil }
    let wait = policy.wait(after: total, asked: asked, using: &random)
    // A policy without waits must come to an end too.
    waited += max(wait, .milliseconds(100))
    return wait
  }
}
