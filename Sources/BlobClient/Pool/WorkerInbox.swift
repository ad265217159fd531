import BlobHTTP
import Blobs

/// The part of a worker that other threads access: to hand it work, or to wake it.
final class WorkerInbox: @unchecked Sendable {
  private struct Inbox {
    var job: QueuedExchange?
    var closed = false
  }
  private let inbox = Monitor(Inbox())
  /// Ends the worker's wait for the network. Any thread may raise it at any time.
  let alarm = Alarm()

  /// A URL at the server that the worker is connected to. `@unchecked`: the pool's lock guards it.
  var last: HTTPURL?

  func leads(to url: HTTPURL) -> Bool {
    last?.isAtServer(of: url) ?? false
  }

  func give(_ job: QueuedExchange) { inbox.update { $0.job = job } }

  func close() { inbox.update { $0.closed = true } }

  /// Waits for the next exchange; nil: the worker must end. If none arrives within `patience`, calls `rest` once and
  /// then waits on. Called on the worker's thread.
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
