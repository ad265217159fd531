import Blobs

/// The body of a worker's current request, and how much of it was read and sent.
struct BodyProgress {
  private let hasTrailers: Bool
  /// The reader of the body; nil without one, or if it was handed to another thread.
  var reader: (any BlobReader)?
  /// Length of the body in bytes; 0 without one; nil: known only at the end of the source.
  var length: Int64?
  /// The reader belongs to the thread that reads ahead.
  private(set) var isReadAhead = false
  /// Body bytes that this attempt has read from the source.
  var given: Int64 = 0
  /// Body bytes that this attempt has handed to the connection.
  private(set) var handed: Int64 = 0
  /// The last chunk and the trailers were handed to the connection.
  var hasEndedChunks = false
  /// Body bytes handed to the connection and reported to `Exchange.sent`, over all attempts: nothing is reported twice.
  private(set) var sent: Int64 = 0

  init(hasTrailers: Bool) { self.hasTrailers = hasTrailers }

  /// The body is sent in chunks. RFC 9112 §7.1.
  var isChunked: Bool { length == nil || hasTrailers }
  /// The body is sent together with the head.
  var isSmall: Bool { !isChunked && length! < WorkerBuffers.smallBody }
  /// This attempt has handed the whole body to the connection.
  var isSent: Bool { isChunked ? hasEndedChunks : handed >= length! }

  /// Starts sending over another connection, on which nothing was sent yet.
  mutating func beginAttempt() { (handed, hasEndedChunks) = (0, false) }

  /// The source is opened and read again.
  mutating func rewind() { (reader, given) = (nil, 0) }

  /// Hands the reader to a thread that reads ahead.
  mutating func takeReader() -> (any BlobReader)? {
    isReadAhead = true
    return reader.take()
  }

  /// Notes that this attempt has handed `count` bytes to the connection. Returns how many of them were not reported yet.
  mutating func noteHanded(_ count: Int64) -> Int {
    handed = count
    defer { sent = max(sent, count) }
    return Int(max(0, count - sent))
  }
}
