import BlobHTTP

/// The number of retries, and the delays before them.
///
/// Failures are counted since the server last stored a fair share of what it was sent: a slow upload that makes
/// progress never runs out of retries, and a server that stores one byte of each attempt is not sent a file forever.
public struct RetryPolicy: Sendable {
  /// Number of consecutive failures after which the upload continues.
  public var retries: Int
  /// The first delay; each further one is twice as long.
  public var first: Duration
  /// The longest delay, computed or requested by a server.
  public var longest: Duration
  /// How long to wait for a destination that was reached before and accepts no connection now, for example because the
  /// machine changes networks or the server restarts. The same applies to a destination that has accepted something
  /// before and responds 502, 503 or 504 now, or closes connection after connection before the first byte of a response,
  /// as a tunnel does whose server is away; and to a source that cannot be read for a while, such as a photo in iCloud.
  /// The delays are added up as long as failures are counted, and these failures do not count as `retries`. nil: they
  /// count like other failures.
  public var outage: Duration?

  /// - `retries`: nil means 8 failures, and `outage` in addition. If a number is given, every failure counts.
  public init(
    retries: Int? = nil, first: Duration = .milliseconds(250), longest: Duration = .seconds(30),
    outage: Duration? = .seconds(600)
  ) {
    self.retries = retries ?? 8
    self.first = first
    self.longest = longest
    self.outage = retries == nil ? outage : nil
  }

  /// The delay after `failures` consecutive failures, including the last one; nil: give up.
  ///
  /// The second half of a delay is random, so that many clients do not return at the same time.
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

/// Consecutive failures since the server last stored a fair share of what it was sent.
struct FailureCount: Sendable {
  /// The server must store one of this many bytes, or its failures stay counted. If connections break all the time, a
  /// twentieth of each attempt may arrive, and the upload must still finish. A file is sent at most this many times.
  static let fairShare: Int64 = 50

  /// All failures: each delay is longer than the one before.
  private(set) var total = 0
  /// The failures that `RetryPolicy.retries` limits.
  private var limited = 0
  /// Total delay in the current outage.
  private var waited = Duration.zero
  /// Bytes of bodies handed to connections since counting began, and bytes that the server has stored since then.
  private(set) var sent: Int64 = 0
  private(set) var kept: Int64 = 0
  /// At the last failure: the number of responses that the host had given to all requests, and `sent`.
  private var atLastFailure: (responses: Int, sent: Int64)?
  /// The host was found to answer another request although it does not answer this one.
  var isAnsweredElsewhere = false
  /// At the last failure, the host had given no response since the failure before.
  private(set) var isHostSilent = false
  /// Bytes of a body that are lost in the buffers of two sockets and a tunnel between them. More of them were read by a
  /// server.
  private static let mostBuffered: Int64 = 4 << 20

  /// Call this once for each failure, before `delay`. Returns whether the host has sent nothing at all since the failure
  /// before: it has closed this connection too before the first byte of a response, and has answered no other request in
  /// between. `responses`: the number of responses that the host has given to all requests.
  mutating func isSilence(_ error: UploadError, responses: Int) -> Bool {
    let before = atLastFailure
    atLastFailure = (responses, sent)
    isHostSilent = before?.responses == responses
    guard let before, (error.cause as? TransportError)?.isUnanswered == true else { return false }
    return responses == before.responses && sent - before.sent <= Self.mostBuffered
  }

  /// Bytes of a body were handed to a connection.
  mutating func noteSent(_ count: Int64) { sent = sent.addingClamped(count) }

  /// The server has stored `count` more bytes. Resets the failures if this is a fair share of the bytes sent since
  /// counting began; returns whether it does.
  mutating func noteKept(_ count: Int64) -> Bool {
    kept = kept.addingClamped(count)
    if kept < sent / Self.fairShare { return false }
    self = FailureCount()
    return true
  }

  /// Counts a failure and returns the delay after it; nil: give up. `isOutage`: a destination that was reachable before
  /// is not now. `least`: failures that are known from elsewhere.
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
    // Otherwise a server that asks for no delay would be sent the same bytes thousands of times.
    if sent > 0, total > policy.retries { wait = max(wait, policy.wait(after: total, asked: nil, using: &random)) }
    // A policy without delays must come to an end too.
    waited += max(wait, .milliseconds(100))
    return wait
  }
}
