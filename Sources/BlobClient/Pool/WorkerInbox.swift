import BlobHTTP
import Blobs

/// What other threads may touch of a worker: they hand it work, or wake it.
final class WorkerInbox: @unchecked Sendable {
  private struct Inbox {
    var job: QueuedExchange?
    var closed = false
  }
  private let inbox = Monitor(Inbox())
  /// Ends the worker's waiting for the network; to be raised at any time.
  let alarm = Alarm()

  /// Where the worker's connection leads. `@unchecked`: the pool's lock guards it.
  var last: HTTPURL?

  func leads(to url: HTTPURL) -> Bool {
    last?.isAtServer(of: url) ?? false
  }

  func give(_ job: QueuedExchange) { inbox.update { $0.job = job } }

  func close() { inbox.update { $0.closed = true } }

  /// The next job, when the pool has one; nil: the worker is to end. Where nothing comes within `patience`, `rest` is called
  /// meanwhile. Called by the worker.
  func wait(atMost patience: Duration, thenCall rest: () -> Void) -> QueuedExchange? {
    if let inbox = inbox.wait(atMost: patience, until: Self.take) { return inbox.job }
    rest()
    return inbox.wait(until: Self.take).job
  }

  private static func take(_ inbox: inout Inbox) -> Inbox? {
    if inbox.job == nil && !inbox.closed { return nil }
    defer { inbox.job = nil }
    return inbox
  }
}
