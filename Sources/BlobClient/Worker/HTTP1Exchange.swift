import BlobHTTP

/// The progress of an exchange.
struct HTTP1Exchange {
  let wire: Connection
  /// No request was sent over the connection before, so no response can be one to an earlier request.
  let isFirst: Bool
  var small: SmallBytes
  /// The body that follows these bytes; nil for a small body or none.
  var body: (any RequestBody)?
  /// Received bytes that were not processed yet.
  var held = 0
  /// The last read has filled the response buffer.
  var isCrowded = false
  var frame = ResponseFraming()
  /// The head of the response, if it was checked and came after the whole request was sent.
  var headThatCounts: HTTPHead?
  var isAnswered = false
  /// The server has closed the connection.
  var hasEnded = false
  var isOver = false
  /// The response is awaited in the `recv` call itself.
  var waits = false

  init(_ connection: IdleConnection, head: Int) {
    wire = connection.wire
    isFirst = connection.exchanges == 0
    small = SmallBytes(head: head, size: head)
  }

  var isSent: Bool { small.isSent && body?.isComplete ?? true }

  /// Whether another request may follow on this connection: request and response are complete.
  var isReusable: Bool {
    isAnswered && isSent && held == 0 && frame.isWhole && frame.keepsConnection
  }

  /// Whether a response that has passed `ServerHabits.checkHasArrived` is the one to this request, with all its bytes, although the rest
  /// of it does not come. Over a connection that was used before, it may be a second response to an earlier request, and a
  /// connection that breaks does not show that.
  func isAnswer(_ head: HTTPHead) -> Bool {
    isFirst && (200..<300 ~= head.status || !wire.hasUnacknowledgedRequest)
  }
}

/// The bytes that a worker sends from its buffer `small`: the request's head, and a small body.
struct SmallBytes {
  /// Length of the head in bytes.
  let head: Int
  var size: Int
  /// How many of the bytes the connection has accepted.
  var sent = 0

  var isSent: Bool { sent == size }
  var sentOfBody: Int64 { Int64(max(0, sent - head)) }
}
