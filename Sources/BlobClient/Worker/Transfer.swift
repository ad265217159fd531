import BlobHTTP
import Blobs

/// What a worker knows of the exchange it is busy with.
final class Transfer {
  let job: QueuedExchange
  /// The job's, with what `Exchange.prepare` has added.
  var request: HTTPRequest
  /// The body's; nil where there is none.
  var reader: (any BlobReader)?
  /// Of the body; 0 without one; nil: only the end will tell.
  var length: Int64?

  #if os(Linux)
    /// The reader is another thread's.
    var isReadAhead = false
  #endif

  /// Body bytes that were read for this attempt to send them.
  var given: Int64 = 0
  /// Body bytes that this attempt has handed to the connection.
  var handed: Int64 = 0
  /// The body goes in chunks. RFC 9112 §7.1.
  var isChunked: Bool { length == nil || job.exchange.trailers != nil }
  /// The body goes with the head.
  var hasSmallBody: Bool { !isChunked && length! < ConnectionWorker.smallBody }
  /// The last chunk was handed to the connection, with the trailers.
  var hasEndedChunks = false
  /// Body bytes handed to the connection and reported to `Exchange.sent`, by all attempts: nothing is reported twice.
  var sent: Int64 = 0
  /// Bytes of heads and content received.
  var received: Int64 = 0
  /// Heads of 1xx that came, but for 100.
  var interimHeads = 0

  /// What the pool was told of it; nil: it need not be.
  var told: ExchangeTimes?

  /// How often it was begun to send the request: twice, when a kept-alive connection was found dead.
  var attempts = 0
  var head = HeadParser()
  var content: [UInt8] = []
  /// Whether some of the content went to `Exchange.received`.
  var hasBegun = false
  /// What was found wrong where an error cannot be thrown.
  var failure: TransportError?

  init(_ job: QueuedExchange) {
    self.job = job
    request = job.request
  }

  /// This attempt has handed the whole body to the connection.
  var isSent: Bool { isChunked ? hasEndedChunks : handed >= length! }

  /// The content of the answer, which has begun, goes to `Exchange.received`.
  var streamsContent: Bool {
    guard job.exchange.received != nil, let head = head.final else { return false }
    return 200..<300 ~= head.status
  }

  /// The request is about to be sent over another connection: nothing has left there, and nothing has come.
  func beginAttempt() {
    attempts += 1
    (handed, hasEndedChunks) = (0, false)
    head = HeadParser()
    content = []
  }
}
