import Platform

/// The time limits of a connection. A header section must be complete in time. While a request is processed, the
/// connection must transfer some bytes in every interval, in either direction. There is no limit while the client waits
/// for a worker.
struct ConnectionTimer {
  struct Limits: Sendable {
    /// Maximum time without any byte, and the interval over which bytes are counted.
    var idle: Duration
    /// Time for a header section, from the start of the connection or, after a response, from its first byte on.
    var head: Duration
    /// Minimum transfer rate; 0: a single byte per interval is enough.
    var bytesPerSecond: Int

    /// How often to call `isOver`.
    var interval: Duration { min(.seconds(1), max(.milliseconds(50), min(idle, head) / 4)) }
  }
  typealias Instant = ContinuousClock.Instant

  private enum Phase {
    /// Nothing has arrived since the last response.
    case idle(since: Instant)
    /// The header section is not complete; `since` is the time of its last byte.
    case head(since: Instant, until: Instant)
    /// A request or its response is being transferred. `moved` is the byte count at the start of the interval; nil: it
    /// was not read yet.
    case busy(since: Instant, moved: Int64?)
    /// A worker processes the request.
    case waiting
    case lingering(until: Instant)
  }
  private var phase: Phase

  init(_ now: Instant, _ limits: Limits) { phase = .head(since: now, until: now + limits.head) }

  /// Call when bytes of a header section arrive.
  mutating func came(_ now: Instant, _ limits: Limits) {
    switch phase {
    case .idle: phase = .head(since: now, until: now + limits.head)
    case .head(_, let until): phase = .head(since: now, until: until)
    case .busy, .waiting, .lingering: break
    }
  }
  /// Call when a header section is complete, or the worker has finished.
  mutating func goOn(_ now: Instant) { phase = .busy(since: now, moved: nil) }
  mutating func wait() { phase = .waiting }
  /// Call when the response has been sent.
  mutating func idle(_ now: Instant) { phase = .idle(since: now) }
  mutating func linger(_ now: Instant) { phase = .lingering(until: now + .seconds(5)) }

  /// nil if the connection has had no response yet, or a request has begun.
  var idleSince: Instant? { if case .idle(let since) = phase { since } else { nil } }

  /// Whether the client has exceeded its time. `moved` returns the bytes received from the client plus those
  /// acknowledged by it; negative if the system does not report them.
  mutating func isOver(_ now: Instant, _ limits: Limits, moved: () -> Int64) -> Bool {
    switch phase {
    case .idle(let since): return now - since > limits.idle
    case .head(let since, let until): return now > until || now - since > limits.idle
    case .waiting: return false
    case .lingering(let until): return now > until
    case .busy(let since, nil):
      phase = .busy(since: since, moved: moved())
      return false
    case .busy(let since, let before?):
      if now - since < limits.idle { return false }
      let moved = moved()
      let wanted = Int64(limits.bytesPerSecond) * (now - since).components.seconds
      phase = .busy(since: now, moved: moved)
      return moved >= 0 && moved - before < max(1, wanted)
    }
  }
}
