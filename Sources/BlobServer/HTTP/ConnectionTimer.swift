import Platform

/// How long a client may take. A head must be complete in time, and while a request is under way its connection must move some
/// bytes in every stretch of time, in either direction. A client that waits for the server has all the time.
struct ConnectionTimer {
  struct Limits: Sendable {
    /// How long a connection may be silent, and the stretch that bytes are counted over.
    var idle: Duration
    /// For a head; the time that a connection was silent between two requests comes on top.
    var head: Duration
    /// 0: some byte is enough.
    var bytesPerSecond: Int

    /// How often `isOver` should be asked.
    var interval: Duration { min(.seconds(1), max(.milliseconds(50), min(idle, head) / 4)) }
  }
  typealias Instant = ContinuousClock.Instant

  private enum Phase {
    /// No head yet, or not all of one; the last byte came then.
    case head(since: Instant, until: Instant)
    /// A request or its answer is on its way. What had moved when the stretch began; nil: it was not looked at.
    case busy(since: Instant, moved: Int64?)
    /// For a worker.
    case waiting
    case lingering(until: Instant)
  }
  private var phase: Phase

  init(_ now: Instant, _ limits: Limits) { phase = .head(since: now, until: now + limits.head) }

  /// A byte of a head has come.
  mutating func came(_ now: Instant) {
    if case .head(_, let until) = phase { phase = .head(since: now, until: until) }
  }
  /// A head is complete, or waiting has ended.
  mutating func goOn(_ now: Instant) { phase = .busy(since: now, moved: nil) }
  mutating func wait() { phase = .waiting }
  /// The answer is sent.
  mutating func isDone(_ now: Instant, _ limits: Limits) {
    phase = .head(since: now, until: now + limits.idle + limits.head)
  }
  mutating func linger(_ now: Instant) { phase = .lingering(until: now + .seconds(5)) }

  /// Whether the client has taken too long. `moved`: bytes that the client sent and those that it acknowledged; negative where
  /// the system does not tell.
  mutating func isOver(_ now: Instant, _ limits: Limits, moved: () -> Int64) -> Bool {
    switch phase {
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
