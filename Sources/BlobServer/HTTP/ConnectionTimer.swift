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
  /// `isInVain`: the client sends a body at a wrong offset. A browser reads no response before it has sent the body, and
  /// sends at the right offset once the connection has ended.
  mutating func linger(_ now: Instant, isInVain: Bool) {
    phase = .lingering(until: now + (isInVain ? .milliseconds(300) : Self.lingering))
  }
  private static let lingering = Duration.seconds(5)

  /// From when on the connection may be closed because another client waits for its place; nil: as long as its phase
  /// lasts, it may not. A connection whose response was just sent may be about to get its next request; one that is new
  /// has no request yet; one whose last response was sent needs some time until the client has it.
  var yieldsFrom: Instant? {
    switch phase {
    case .idle(let since): since + .milliseconds(100)
    case .head(let since, _): since + .seconds(1)
    case .lingering(let until): until - Self.lingering + .milliseconds(500)
    case .busy, .waiting: nil
    }
  }

  /// Gives the client this much more time, because the server itself has not run for so long. Without effect if the time
  /// began after `last`, when the server ran before its pause.
  mutating func extend(by pause: Duration, since last: Instant) {
    switch phase {
    case .idle(let since) where since <= last: phase = .idle(since: since + pause)
    case .head(let since, let until) where since <= last: phase = .head(since: since + pause, until: until + pause)
    case .busy(let since, let moved) where since <= last: phase = .busy(since: since + pause, moved: moved)
    case .lingering(let until) where until - Self.lingering <= last: phase = .lingering(until: until + pause)
    case .idle, .head, .busy, .lingering, .waiting: break
    }
  }

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
