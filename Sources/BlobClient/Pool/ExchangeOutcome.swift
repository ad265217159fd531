import BlobHTTP
import Blobs

/// A request with a body that has come to a good end, or what of a long body has left its buffers behind.
struct SentPiece: Sendable {
  let bytes: Int64
  /// When it began.
  let began: Duration
  /// When its last byte was done with.
  let ended: Duration
}

/// What became of a job, as far as others can learn from it.
struct ExchangeOutcome: Sendable {
  var arrived: SentPiece?
  /// When it was sent and refused, by a server that was asked too much.
  var refused: (began: Duration, ended: Duration)?
}

/// How much of a transfer is told already.
struct ExchangeTimes {
  let began: Duration
  /// Bytes of pieces that were told, and when the last of them was.
  private var bytes: Int64 = 0
  private var last: Duration

  /// What a connection may hold that has not gone anywhere yet; it is also what a piece has.
  static let piece: Int64 = 4 << 20

  init(at now: Duration) { (began, last) = (now, now) }

  /// The next piece, of a body of which `sent` bytes went to the connection; nil: it may still be here.
  mutating func piece(sent: Int64) -> SentPiece? {
    if sent - bytes < 2 * Self.piece { return nil }
    bytes += Self.piece
    let now = MonotonicClock().now
    defer { last = now }
    return SentPiece(bytes: Self.piece, began: last, ended: now)
  }

  /// What is left when the answer is there. Requests without a body tell nothing: they take their round trip, however many.
  func lesson(of transfer: Transfer, _ answer: QueuedExchange.Answer, at now: Duration) -> ExchangeOutcome {
    var lesson = ExchangeOutcome()
    guard case .success(let response) = answer else { return lesson }
    if response.status == 429 || response.status == 503 { lesson.refused = (began, now) }
    if response.isSuccess, transfer.sent > bytes {
      lesson.arrived = SentPiece(bytes: transfer.sent - bytes, began: last, ended: now)
    }
    return lesson
  }
}
