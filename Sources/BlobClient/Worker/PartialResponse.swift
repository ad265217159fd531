import BlobHTTP

/// The part that has arrived of the response to a worker's current request.
struct PartialResponse {
  var head = HeadParser()
  var content: [UInt8] = []
  /// Whether some of the content went to `Exchange.received`.
  var hasBegun = false
  /// Bytes of heads and content received, over all attempts.
  var received: Int64 = 0
  /// Received 1xx responses other than 100, over all attempts.
  var interimHeads = 0

  /// The request is sent over another connection, on which nothing was received yet.
  mutating func beginAttempt() { (head, content) = (HeadParser(), []) }
}
