import BlobHTTP
import Blobs

/// The state of a worker's current exchange.
final class Transfer {
  let job: QueuedExchange
  /// The request, with what `Exchange.prepare` has added.
  var request: HTTPRequest
  /// The reader of the body; nil without one, or if it was handed to another thread.
  var reader: (any BlobReader)?
  /// Length of the body in bytes; 0 without one; nil: known only at the end of the source.
  var length: Int64?

  /// The reader belongs to the thread that reads ahead.
  var isReadAhead = false

  /// Body bytes that this attempt has read from the source.
  var given: Int64 = 0
  /// Body bytes that this attempt has handed to the connection.
  var handed: Int64 = 0
  /// The body is sent in chunks. RFC 9112 §7.1.
  var isChunked: Bool { length == nil || job.exchange.trailers != nil }
  /// The body is sent together with the head.
  var hasSmallBody: Bool { !isChunked && length! < ConnectionWorker.smallBody }
  /// The last chunk and the trailers were handed to the connection.
  var hasEndedChunks = false
  /// Body bytes handed to the connection and reported to `Exchange.sent`, over all attempts: nothing is reported twice.
  var sent: Int64 = 0
  /// Bytes of heads and content received.
  var received: Int64 = 0
  /// Received 1xx responses other than 100.
  var interimHeads = 0

  /// The progress that was reported to the pool; nil: the pool needs no reports.
  var told: ExchangeTimes?

  /// How many times sending was started: twice if a reused connection was dead.
  var attempts = 0
  var head = HeadParser()
  var content: [UInt8] = []
  /// Whether some of the content went to `Exchange.received`.
  var hasBegun = false
  /// An error that was found where it cannot be thrown.
  var failure: TransportError?

  init(_ job: QueuedExchange) {
    self.job = job
    request = job.request
  }

  /// This attempt has handed the whole body to the connection.
  var isSent: Bool { isChunked ? hasEndedChunks : handed >= length! }

  /// Whether the final head has come and the content of the response goes to `Exchange.received`.
  var streamsContent: Bool {
    guard job.exchange.received != nil, let head = head.final else { return false }
    return 200..<300 ~= head.status
  }

  /// Starts sending over another connection, on which nothing was sent or received yet.
  func beginAttempt() {
    attempts += 1
    (handed, hasEndedChunks) = (0, false)
    head = HeadParser()
    content = []
  }
}
