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

  public init(retries: Int = 8, first: Duration = .milliseconds(250), longest: Duration = .seconds(30)) {
    self.retries = retries
    self.first = first
    self.longest = longest
  }

  /// How long to wait after `failures` in a row, the last of them included; nil: give up.
  ///
  /// A wait is spread over its second half, so that many clients do not come back at once.
  public func delay(
    after failures: Int, asked: Duration?, using random: inout some RandomNumberGenerator
  ) -> Duration? {
    if failures > retries { return nil }
    if let asked { return min(asked, longest) }
    let wait = min(first * (1 << min(failures - 1, 20)), longest)
    return wait * Double.random(in: 0.5...1, using: &random)
  }
}
