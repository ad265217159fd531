import BlobHTTP
import Blobs

/// The state of a worker's current exchange.
final class Transfer {
  let job: QueuedExchange
  /// The request, with what `Exchange.prepare` has added.
  var request: HTTPRequest
  var body: BodyProgress
  var response = PartialResponse()

  /// The progress that was reported to the pool; nil: the pool needs no reports.
  var times: ExchangeTimes?

  /// How many times sending was started: twice if a reused connection was dead.
  var attempts = 0
  /// An error that was found where it cannot be thrown.
  var failure: TransportError?

  init(_ job: QueuedExchange) {
    self.job = job
    request = job.request
    body = BodyProgress(hasTrailers: job.exchange.trailers != nil)
  }

  /// Whether the final head has come and the content of the response goes to `Exchange.received`.
  var streamsContent: Bool {
    guard job.exchange.received != nil, let head = response.head.final else { return false }
    return 200..<300 ~= head.status
  }

  /// Starts sending over another connection, on which nothing was sent or received yet.
  func beginAttempt() {
    attempts += 1
    body.beginAttempt()
    response.beginAttempt()
  }
}
