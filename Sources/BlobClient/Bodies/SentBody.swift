import BlobHTTP

/// How much of its body one attempt to send a request has handed to the connection.
///
/// libcurl counts what it sends of a chunked body together with the chunks' framing. What that amounts to is counted here
/// as libcurl makes it: one chunk for every time that it is given bytes, then the last chunk and the trailers.
/// RFC 9112 §7.1.
struct SentBody {
  /// The body goes in chunks.
  let isChunked: Bool
  /// Bytes of the body; never more than have left.
  private(set) var count: Int64 = 0
  /// Bytes around those that libcurl was given.
  private var framing: Int64 = 0
  /// The last chunk was made, with the trailers.
  private var isComplete = false
  /// All that libcurl was given has left, with its framing.
  private var isFlushed = true

  init(isChunked: Bool = false) { self.isChunked = isChunked }

  /// The whole body was handed to the connection. `length` is nil where only the end tells it.
  func isWhole(of length: Int64?) -> Bool {
    if isChunked { return isComplete && isFlushed }
    return length.map { count >= $0 } ?? false
  }

  /// The connection has taken so much of a body that has no framing.
  mutating func hasSent(_ count: Int64) { self.count = count }

  /// libcurl has sent `total` bytes, framing included, of a body of which it was given `given` bytes so far.
  mutating func hasSent(_ total: Int64, byLibcurlOf given: Int64) {
    count = min(max(total - framing, 0), given)
    isFlushed = total >= given + framing
  }

  /// libcurl was given `count` bytes: of a chunked body they are a chunk of their own.
  mutating func frame(_ count: Int) {
    if !isChunked { return }
    // Its size in hexadecimal digits, and two line breaks.
    framing += Int64((Int.bitWidth - count.leadingZeroBitCount + 3) / 4 + 4)
    isFlushed = false
  }

  /// The source has ended: libcurl sends the last chunk, and the trailers, if there are any.
  mutating func end(_ trailers: HTTPHeaders) {
    if isComplete || !isChunked { return }
    isComplete = true
    isFlushed = false
    framing += Int64("0\r\n\r\n".utf8.count)
    for (name, value) in trailers.fields { framing += Int64("\(name): \(value)\r\n".utf8.count) }
  }
}
