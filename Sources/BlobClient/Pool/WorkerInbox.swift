import BlobHTTP
import Blobs

/// The part of a worker that other threads access: to hand it work, or to wake it.
final class WorkerInbox: @unchecked Sendable {
  private struct Inbox {
    var job: QueuedExchange?
    var closed = false
    /// The worker must close its connection.
    var letsGo = false
    /// Called once the worker has examined its connection.
    var checks: [@Sendable () -> Void] = []
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

  /// Makes an idle worker examine its connection, and then call `done`.
  func check(_ done: @escaping @Sendable () -> Void) { inbox.update { $0.checks.append(done) } }

  /// Waits for the next exchange; nil: the worker must end. If none arrives within `patience`, calls `rest` once and
  /// then waits on. Calls `checking` when the worker must examine its connection, and `closing` when it must close it.
  /// Called on the worker's thread.
  func wait(
    atMost patience: Duration, thenCall rest: () -> Void, checking: () -> Void, closing: () -> Void
  ) -> QueuedExchange? {
    var hasRested = false
    while true {
      let found = hasRested ? inbox.wait(until: Self.take) : inbox.wait(atMost: patience, until: Self.take)
      guard let found else {
        rest()
        hasRested = true
        continue
      }
      if !found.checks.isEmpty {
        checking()
        for done in found.checks { done() }
      }
      if found.letsGo { closing() }
      if found.job != nil || found.closed { return found.job }
    }
  }

  private static func take(_ inbox: inout Inbox) -> Inbox? {
    if inbox.job == nil && !inbox.closed && !inbox.letsGo && inbox.checks.isEmpty { return nil }
    defer { (inbox.job, inbox.letsGo, inbox.checks) = (nil, false, []) }
    return inbox
  }
}
