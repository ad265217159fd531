import BlobHTTP
import Blobs

/// Computes how long one exchange may wait for the network, and when it times out.
struct StallTimer {
  private let (noProgress, finishing): (Duration, Duration)
  private let isSafe: Bool
  private let began: SuspendingClock.Instant
  private var moved: SuspendingClock.Instant
  private var mark: Int64 = 0
  /// When the last byte of the request was sent.
  private var sent: SuspendingClock.Instant
  private var sentMark: Int64 = 0
  /// When a byte was last sent or an interim response came. Interim responses to a safe request do not count.
  private var asked: SuspendingClock.Instant
  private var interimHeads = 0
  /// When the final head came, if the whole body was not sent at that time; nil otherwise.
  private var answered: SuspendingClock.Instant?

  /// Interim responses extend the time for the response, up to this many times `finishing` after the last sent byte.
  static let mostFinishing = 12

  init(_ options: SocketTransport.Options, _ transfer: Transfer) {
    isSafe = transfer.job.request.isSafe
    // The response to a safe request may take at least as long as `noProgress`.
    (noProgress, finishing) =
      (options.noProgress, isSafe ? max(options.finishing, options.noProgress) : options.finishing)
    began = SuspendingClock.now
    (moved, sent, asked) = (began, began, began)
  }

  /// Returns the milliseconds until the next timeout. Throws `.timeout` when one has passed.
  mutating func wait(_ transfer: Transfer) throws(TransportError) -> Int32 {
    let now = SuspendingClock.now
    let mark = transfer.body.sent + transfer.body.given + transfer.response.received + Int64(transfer.attempts)
    if mark != self.mark {
      self.mark = mark
      moved = now
    }
    let sentMark = transfer.body.sent + transfer.body.given + Int64(transfer.attempts)
    if sentMark != self.sentMark {
      self.sentMark = sentMark
      (sent, asked) = (now, now)
    }
    // With interim responses the server says that it processes what it received. A safe request does not give it such
    // work.
    if transfer.response.interimHeads != interimHeads {
      interimHeads = transfer.response.interimHeads
      if !isSafe { asked = now }
    }
    let mustAnswer = transfer.body.isSent && !isSafe
    let isFinishing = mustAnswer && transfer.response.head.final == nil
    let limit = isFinishing ? finishing : noProgress
    let left = limit - (now - moved)
    if left <= .zero { throw expired(transfer, isFinishing, limit) }
    // Content that goes to `Exchange.received` may be of any length.
    if isSafe && transfer.streamsContent { return left.pollTime }
    // This limit applies even if bytes of the response keep arriving.
    let rest = rest(transfer, now)
    if rest <= .zero { throw mustAnswer ? expired(transfer, true, finishing) : trickled(transfer) }
    return min(left, rest).pollTime
  }

  /// Called while the client itself lets the request wait: no timeout but that for the rest of a response passes meanwhile.
  mutating func pause() {
    let now = SuspendingClock.now
    (moved, sent, asked) = (now, now, now)
  }

  /// The time left for the rest of the response. It is measured from the last byte of the request, or the last interim
  /// response. A final head that comes before the whole body was sent starts it for the last time: the server does not
  /// use what is sent later.
  private mutating func rest(_ transfer: Transfer, _ now: SuspendingClock.Instant) -> Duration {
    if transfer.body.isSent, answered == nil {
      return rest(of: finishing, now)
    }
    guard transfer.response.head.final != nil else {
      // While no response has begun, the body may stall for as long as `noProgress` allows.
      answered = nil
      let limit = max(finishing, noProgress)
      return rest(of: limit, now)
    }
    if answered == nil { answered = now }
    return finishing - (now - answered!)
  }

  private func rest(of limit: Duration, _ now: SuspendingClock.Instant) -> Duration {
    let rest = limit - (now - asked)
    // Most servers send no interim responses.
    return interimHeads == 0 ? rest : min(rest, limit * Self.mostFinishing - (now - sent))
  }

  private func trickled(_ transfer: Transfer) -> TransportError {
    TransportError(
      .timeout,
      "\(transfer.job.name): the server did not end its answer within \(finishing), and \(transfer.response.received) bytes of it have come"
    )
  }

  private func expired(_ transfer: Transfer, _ isFinishing: Bool, _ limit: Duration) -> TransportError {
    let what =
      isFinishing && interimHeads > 0
      ? "the server said that it was at work, and did not answer within \(limit) of that, or "
        + "\(limit * Self.mostFinishing) of the last byte, after \(transfer.body.sent) bytes were sent"
      : isFinishing
        ? "the server did not answer within \(limit) of the last byte, after \(transfer.body.sent) bytes were sent"
        : "nothing moved for \(limit), after \(transfer.body.sent) bytes were sent and \(transfer.response.received) received"
    return TransportError(.timeout, "\(transfer.job.name): \(what)")
  }
}

extension QueuedExchange {
  /// Whether the transport may send the request again if a reused connection turns out to be closed.
  var mayBeRepeated: Bool { request.isIdempotent && !exchange.isSentOnce }
}
