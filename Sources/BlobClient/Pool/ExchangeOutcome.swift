import BlobHTTP
import Blobs

/// A body that was sent and answered with success, or a piece of a long body that has left the local buffers.
struct SentPiece: Sendable {
  let bytes: Int64
  let began: Duration
  /// When its last byte was sent, or its response had arrived.
  let ended: Duration
}

/// The result of a request, by which the controller changes the number of concurrent requests.
struct ExchangeOutcome: Sendable {
  var arrived: SentPiece?
  /// When the request was sent and rejected, if the server rejected it because there were too many.
  var refused: (began: Duration, ended: Duration)?
}

/// Tracks which pieces of a transfer were already reported.
struct ExchangeTimes {
  let began: Duration
  /// Bytes of the reported pieces, and the time of the last report.
  private var bytes: Int64 = 0
  private var last: Duration

  /// The size of a piece. It is also the number of bytes that may still be in the local buffers of a connection.
  static let piece: Int64 = 4 << 20

  init(at now: Duration) { (began, last) = (now, now) }

  /// The next piece of a body of which `sent` bytes were handed to the connection; nil: it may still be in the local
  /// buffers.
  mutating func piece(sent: Int64) -> SentPiece? {
    if sent - bytes < 2 * Self.piece { return nil }
    bytes += Self.piece
    let now = MonotonicClock().now
    defer { last = now }
    return SentPiece(bytes: Self.piece, began: last, ended: now)
  }

  /// The outcome at the end of the transfer, with the unreported rest. Requests without a body say nothing about the
  /// width: each takes one round trip, however many run.
  func outcome(of transfer: Transfer, _ answer: QueuedExchange.Answer, at now: Duration) -> ExchangeOutcome {
    var outcome = ExchangeOutcome()
    guard case .success(let response) = answer else { return outcome }
    if response.status == 429 || response.status == 503 { outcome.refused = (began, now) }
    if response.isSuccess, transfer.body.sent > bytes {
      outcome.arrived = SentPiece(bytes: transfer.body.sent - bytes, began: last, ended: now)
    }
    return outcome
  }
}
