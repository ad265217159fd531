import BlobHTTP
import Blobs

/// The part of a worker that other threads access: to hand it work, or to wake it.
final class WorkerInbox: @unchecked Sendable {
  private struct Inbox {
    var job: QueuedExchange?
    var closed = false
    /// The worker must close its connection.
    var letsGo = false
  }
  private let inbox = Monitor(Inbox())
  /// Ends the worker's wait for the network. Any thread may raise it at any time.
  let alarm = Alarm()

  /// A URL at the server that the idle worker is connected to; nil: it has no connection. `@unchecked`: the pool's lock guards it.
  var last: HTTPURL?

  func leads(to url: HTTPURL) -> Bool {
    last?.isAtServer(of: url) ?? false
  }

  func give(_ job: QueuedExchange) { inbox.update { $0.job = job } }

  func close() { inbox.update { $0.closed = true } }

  /// Makes an idle worker close its connection.
  func letGo() { inbox.update { $0.letsGo = true } }

  /// Waits for the next exchange; nil: the worker must end. If none arrives within `patience`, calls `rest` once and
  /// then waits on. Calls `closing` when the worker must close its connection. Called on the worker's thread.
  func wait(atMost patience: Duration, thenCall rest: () -> Void, closing: () -> Void) -> QueuedExchange? {
    var found = inbox.wait(atMost: patience, until: Self.take)
    if found == nil { rest() }
    while true {
      let inbox = found ?? inbox.wait(until: Self.take)
      if inbox.letsGo { closing() }
      if inbox.job != nil || inbox.closed { return inbox.job }
      found = nil
    }
  }

  private static func take(_ inbox: inout Inbox) -> Inbox? {
    if inbox.job == nil && !inbox.closed && !inbox.letsGo { return nil }
    defer { (inbox.job, inbox.letsGo) = (nil, false) }
    return inbox
  }
}
