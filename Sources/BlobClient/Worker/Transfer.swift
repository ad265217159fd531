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

  /// `host:port`, for messages.
  var server: String { "\(job.request.url.host):\(job.request.url.port)" }

  /// The progress of the exchange, for messages. For a request without a body, the received bytes matter.
  var reached: String {
    job.body == nil && response.received > 0
      ? "after \(response.received) bytes had come" : "after \(body.sent) bytes were sent"
  }

  /// Reports how many bytes of the body this attempt has handed to the connection.
  func report(handedOver sent: Int64) {
    let new = body.noteHanded(sent)
    if new == 0 { return }
    job.exchange.sent(new)
    if let piece = times?.piece(sent: sent) { job.pool.passed(piece) }
  }

  func cancelled() -> TransportError {
    job.cancelled("after \(body.sent) bytes were sent")
  }
}
