import BlobHTTP
import Blobs

/// The clock of one exchange: how long to wait for the network, and when to give up.
struct StallTimer {
  private let (noProgress, finishing): (Duration, Duration)
  private let isSafe: Bool
  private let began: SuspendingClock.Instant
  private var moved: SuspendingClock.Instant
  private var mark: Int64 = 0
  /// When a byte of the request was sent last.
  private var sent: SuspendingClock.Instant
  private var sentMark: Int64 = 0
  /// When a byte was sent, or an interim head came, last; interim heads do not count with a question.
  private var asked: SuspendingClock.Instant
  private var interimHeads = 0
  /// When the final head came, if that was before the whole body was sent.
  private var answered: SuspendingClock.Instant?

  /// Interim heads put the finishing limit off, up to so many times that limit after the last byte that was sent.
  static let mostFinishing = 12

  init(_ options: SocketTransport.Options, _ transfer: Transfer) {
    isSafe = transfer.job.request.isSafe
    // A question may take as long as nothing may move, at least.
    (noProgress, finishing) =
      (options.noProgress, isSafe ? max(options.finishing, options.noProgress) : options.finishing)
    began = SuspendingClock.now
    (moved, sent, asked) = (began, began, began)
  }

  /// Milliseconds until a limit is reached. Throws `.timeout` when one is.
  mutating func wait(_ transfer: Transfer) throws(TransportError) -> Int32 {
    let now = SuspendingClock.now
    let mark = transfer.sent + transfer.given + transfer.received + Int64(transfer.attempts)
    if mark != self.mark {
      self.mark = mark
      moved = now
    }
    let sentMark = transfer.sent + transfer.given + Int64(transfer.attempts)
    if sentMark != self.sentMark {
      self.sentMark = sentMark
      (sent, asked) = (now, now)
    }
    // A server says by interim heads that it is at work on what it was sent. A question gives it no such work.
    if transfer.interimHeads != interimHeads {
      interimHeads = transfer.interimHeads
      if !isSafe { asked = now }
    }
    let mustAnswer = transfer.isSent && !isSafe
    let isFinishing = mustAnswer && transfer.head.final == nil
    let limit = isFinishing ? finishing : noProgress
    let left = limit - (now - moved)
    if left <= .zero { throw expired(transfer, isFinishing, limit) }
    // Content that somebody takes as it comes may be of any length.
    if isSafe && transfer.streamsContent { return left.pollTime }
    // However often a byte of the answer comes.
    let rest = rest(transfer, now)
    if rest <= .zero { throw mustAnswer ? expired(transfer, true, finishing) : trickled(transfer) }
    return min(left, rest).pollTime
  }

  /// What is left for the rest of the answer. The clock starts with the last byte of the request, and with each interim head
  /// again. A final head that comes before the whole body was sent starts it for the last time: what is sent after it is of
  /// no use to the server.
  private mutating func rest(_ transfer: Transfer, _ now: SuspendingClock.Instant) -> Duration {
    if transfer.isSent, answered == nil {
      return rest(of: finishing, now)
    }
    guard transfer.head.final != nil else {
      // Nothing of the body may leave for as long as nothing may move at all.
      answered = nil
      let limit = max(finishing, noProgress)
      return rest(of: limit, now)
    }
    if answered == nil { answered = now }
    return finishing - (now - answered!)
  }

  private func rest(of limit: Duration, _ now: SuspendingClock.Instant) -> Duration {
    let rest = limit - (now - asked)
    // Most servers send no interim heads.
    return interimHeads == 0 ? rest : min(rest, limit * Self.mostFinishing - (now - sent))
  }

  private func trickled(_ transfer: Transfer) -> TransportError {
    TransportError(
      .timeout,
      "\(transfer.job.name): the server did not end its answer within \(finishing), and \(transfer.received) bytes of it have come"
    )
  }

  private func expired(_ transfer: Transfer, _ isFinishing: Bool, _ limit: Duration) -> TransportError {
    let what =
      isFinishing && interimHeads > 0
      ? "the server said that it was at work, and did not answer within \(limit) of that, or "
        + "\(limit * Self.mostFinishing) of the last byte, after \(transfer.sent) bytes were sent"
      : isFinishing
        ? "the server did not answer within \(limit) of the last byte, after \(transfer.sent) bytes were sent"
        : "nothing moved for \(limit), after \(transfer.sent) bytes were sent and \(transfer.received) received"
    return TransportError(.timeout, "\(transfer.job.name): \(what)")
  }
}

extension QueuedExchange {
  /// The transport may send the request a second time where a connection that was kept open turns out to be closed.
  var mayBeRepeated: Bool { request.isIdempotent && !exchange.isSentOnce }
}
