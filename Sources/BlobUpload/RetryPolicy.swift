/// How often, and after how long, something is tried again.
///
/// Failures are counted since the server last kept a fair share of what it was sent: a slow but moving upload never runs out
/// of tries, and a server that keeps a byte of each try is not sent a file without end.
public struct RetryPolicy: Sendable {
  /// Failures in a row that are forgiven.
  public var retries: Int
  /// The first wait; each further one is twice as long.
  public var first: Duration
  /// The longest wait of our own choosing, and the longest that a server may ask for.
  public var longest: Duration
  /// How long a destination is waited for that was reached before and to which no connection can be made now: a machine
  /// that changes networks, a server that is started again. So is one that has taken something before and answers 502, 503 or
  /// 504 now. The waits are summed up for as long as failures are counted, and these failures do not count as
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

/// Failures in a row, since the server last kept a fair share of what it was sent.
struct FailureCount: Sendable {
  /// The server must keep one byte of so many, or its failures stay counted. Where connections break all the time, a twentieth
  /// of each try may arrive, and the upload must still come to its end. It then sends a file this many times at the most.
  static let fairShare: Int64 = 50

  /// All of them: each wait is longer than the one before.
  private(set) var total = 0
  /// Those for which `RetryPolicy.retries` is the limit.
  private var limited = 0
  /// How long an outage has been waited for by now.
  private var waited = Duration.zero
  /// Bytes of bodies that were handed to connections since the count began, and bytes that the server has kept since then.
  private(set) var sent: Int64 = 0
  private(set) var kept: Int64 = 0

  /// Bytes of a body were handed to a connection.
  mutating func noteSent(_ count: Int64) { sent = sent.addingClamped(count) }

  /// The server has kept `count` bytes more. All failures are forgotten where that is a fair share of what was sent since the
  /// count began; returns whether it is.
  mutating func noteKept(_ count: Int64) -> Bool {
    kept = kept.addingClamped(count)
    if kept < sent / Self.fairShare { return false }
    self = FailureCount()
    return true
  }

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
    var wait = policy.wait(after: total, asked: asked, using: &random)
    // A server that asks for no wait would be sent the same bytes thousands of times.
    if sent > 0, total > policy.retries { wait = max(wait, policy.wait(after: total, asked: nil, using: &random)) }
    // A policy without waits must come to an end too.
    waited += max(wait, .milliseconds(100))
    return wait
  }
}
