import BlobHTTP
import Platform

/// A connection that no request is using.
final class IdleConnection {
  let wire: Connection
  /// A URL at its server.
  let url: HTTPURL
  let proxy: Proxy?
  var since = SuspendingClock.now
  /// The connection was idle: the server may have closed it before the next request arrives.
  var wasIdle = false
  /// For how long it had been idle when a request took it.
  var idleTime = Duration.zero
  /// The number of completed exchanges.
  private(set) var exchanges = 0
  /// The upload that the last exchange has stored something of. nil after the first exchange, whose response cannot be
  /// one to an earlier request.
  private(set) var lastUpload: Int64?
  /// Whether the socket is now blocking, for `receive(waiting: true)`.
  var waits = false

  /// Whether the end of this process discards what is in the socket's buffer.
  private var discards = false

  init(_ wire: Connection, to url: HTTPURL, through proxy: Proxy?) {
    self.wire = wire
    self.url = url
    self.proxy = proxy
  }

  /// Called after an exchange that has a response.
  func becomesIdle(after transfer: Transfer) {
    let isStored = transfer.job.body != nil && transfer.response.head.final.map { 200..<300 ~= $0.status } ?? false
    lastUpload = exchanges > 0 && isStored ? transfer.job.exchange.upload : nil
    exchanges += 1
    (wasIdle, idleTime) = (true, .zero)
    since = .now
  }

  /// While a request is sent, a killed process must leave nothing behind: the system would go on sending the rest of the
  /// request, and the server would store it after a newer version that the next process sends.
  func discards(_ discards: Bool) {
    if self.discards == discards { return }
    Socket.discardsOnClose(wire.socket, discards)
    self.discards = discards
  }

  /// A large body is sent with non-blocking calls.
  func lets(wait: Bool) {
    if waits == wait || !wire.canWait { return }
    wire.lets(wait: wait)
    waits = wait
  }
}
