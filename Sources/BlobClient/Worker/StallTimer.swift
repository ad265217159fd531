import BlobHTTP
import Blobs

/// The clock of one exchange: how long to wait for the network, and when to give up.
struct StallTimer {
  private let (noProgress, finishing): (Duration, Duration)
  private let isSafe: Bool
  private let began: SuspendingClock.Instant
  private var moved: SuspendingClock.Instant
  private var mark: Int64 = 0
  /// When a byte was sent, or an interim head came, last; interim heads do not count with a question.
  private var asked: SuspendingClock.Instant
  private var askedMark: Int64 = 0

  init(_ options: SocketTransport.Options, _ transfer: Transfer) {
    isSafe = transfer.job.request.isSafe
    // A question may take as long as nothing may move, at least.
    (noProgress, finishing) =
      (options.noProgress, isSafe ? max(options.finishing, options.noProgress) : options.finishing)
    began = SuspendingClock.now
    (moved, asked) = (began, began)
  }

  /// Milliseconds until a limit is reached. Throws `.timeout` when one is.
  mutating func wait(_ transfer: Transfer) throws(TransportError) -> Int32 {
    let now = SuspendingClock.now
    // libcurl keeps the limit for connecting itself, for it shares it out among the addresses of a host.
    if transfer.attempts == 0 { return 60_000 }
    let mark = transfer.sent + transfer.given + transfer.received + Int64(transfer.attempts)
    if mark != self.mark {
      self.mark = mark
      moved = now
    }
    // A server says by interim heads that it is at work on what it was sent. A question gives it no such work.
    let interimHeads = isSafe ? 0 : transfer.interimHeads
    let askedMark = transfer.sent + transfer.given + Int64(transfer.attempts + interimHeads)
    if askedMark != self.askedMark {
      self.askedMark = askedMark
      asked = now
    }
    let mustAnswer = transfer.isSent && !isSafe
    let isFinishing = mustAnswer && transfer.head.final == nil
    let limit = isFinishing ? finishing : noProgress
    let left = limit - (now - moved)
    if left <= .zero { throw expired(transfer, isFinishing, limit) }
    // Content that somebody takes as it comes may be of any length.
    if !transfer.isSent || isSafe && transfer.streamsContent { return left.pollTime }
    // However often a byte of the answer comes.
    let rest = finishing - (now - asked)
    if rest <= .zero { throw mustAnswer ? expired(transfer, true, finishing) : trickled(transfer) }
    return min(left, rest).pollTime
  }

  private func trickled(_ transfer: Transfer) -> TransportError {
    TransportError(
      .timeout,
      "\(transfer.job.name): the server did not end its answer within \(finishing), and \(transfer.received) bytes of it have come"
    )
  }

  private func expired(_ transfer: Transfer, _ isFinishing: Bool, _ limit: Duration) -> TransportError {
    let what =
      isFinishing
      ? "the server did not answer within \(limit) of the last byte, after \(transfer.sent) bytes were sent"
      : "nothing moved for \(limit), after \(transfer.sent) bytes were sent and \(transfer.received) received"
    return TransportError(.timeout, "\(transfer.job.name): \(what)")
  }
}

extension QueuedExchange {
  /// The transport may send the request a second time where a connection that was kept open turns out to be closed.
  var mayBeRepeated: Bool { request.isIdempotent && !exchange.isSentOnce }
}
