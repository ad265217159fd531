/// How far the bytes of a session have come. The defaults are for a new session.
struct TransferState {
  /// Offset up to which the server has the bytes; nil: the server must be queried.
  var offset: Int64?
  /// The highest offset that the server has acknowledged.
  var best: Int64 = 0
  /// No byte from this offset on was handed to a connection, by this run or an earlier one. nil: it is unknown how many
  /// an earlier run has sent, and the server has not been queried yet.
  var sentEnd: Int64? = 0
  /// The server may still process bytes of an earlier request whose response was lost.
  var mayBeReceiving = false
  /// Length of the body that was sent last, or the maximum that it could have.
  private(set) var attempted: Int64 = 0
  /// The body that was sent last extends to the end of the source.
  private(set) var attemptedLast = false

  /// Called before a request with the bytes of `part`; nil: it has none.
  mutating func begin(_ part: Part?) {
    (attempted, attemptedLast) = part.map { ($0.length ?? .max, $0.isLast) } ?? (0, false)
  }

  /// Called after that request: `count` bytes from `offset` on were handed to the connection. These may be more than it
  /// had, because a protocol may send a body twice, for example after a redirect or a failed precondition.
  mutating func noteSent(_ count: Int64, from offset: Int64) {
    sentEnd = sentEnd.map { max($0, offset + min(count, attempted)) }
  }

  /// The last body was handed to the connection completely, as far as that is known. `count`: bytes handed to it.
  func tookBody(_ count: Int64) -> Bool { attempted == .max ? count > 0 : count >= attempted }
}

/// The session of an upload that an earlier run has begun, and the bytes that run has sent, as the journal has them.
struct EarlierUpload: Sendable {
  /// nil: the server has no upload.
  var session: UploadSession?
  var receipts: [PartReceipt] = []
  /// Ranges that must be compared with the source before the session is resumed; nil: none.
  var doubted: [SentRange]?
  /// No byte from this offset on was handed to a connection; nil: unknown.
  var sentLimit: Int64?
}
