import BlobHTTP
import Blobs
import CCurl
import Platform

/// Makes the connections of a worker, and stores the one that no exchange uses.
final class ConnectionMaker {
  private let pool: ConnectionPool
  let waiter: SocketWaiter
  /// The connection, while no exchange uses it.
  var kept: IdleConnection?
  /// The failure of a connection that was made ahead of its requests; the message lacks the name of a request.
  private var failedAhead: (url: HTTPURL, since: SuspendingClock.Instant, error: TransportError)?

  init(_ pool: ConnectionPool, _ inbox: WorkerInbox) {
    self.pool = pool
    waiter = SocketWaiter(pool: pool, inbox: inbox)
  }

  /// Whether the stored connection leads to this server through this proxy, and is still open.
  func isKept(for url: HTTPURL, through proxy: Proxy?) -> Bool {
    guard let kept, kept.url.isAtServer(of: url), kept.proxy == proxy else { return false }
    kept.idleTime = SuspendingClock.now - kept.since
    return kept.idleTime < Self.longestIdle && note(kept.wire.idleState, of: kept)
  }

  /// Makes a new connection in place of the stored one.
  func connect(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) {
    letGo()
    try checkAhead(transfer)
    transfer.attempts = 0
    let url = transfer.job.request.url
    let end = SuspendingClock.now + pool.options.connect
    let dialer = Dialer(try Route(to: url, through: proxy, for: transfer.job.name), pool.options)
    let result = try dial(transfer, dialer, until: end)
    if result != CURLE_OK { throw DialFailure(dialer, transfer, proxy, result, pool.options).error }
    let wire: Connection
    if dialer.route.isNested, let socket = dialer.socket {
      wire = .nested(dialer, socket: socket)
    } else if let socket = dialer.takeSocket() {
      wire =
        try dialer.route.secured.map { peer throws(TransportError) in
          try TLSHandshake(peer: peer, socket: socket, transfer: transfer, end: end, waiter: waiter).connection()
        } ?? .plain(socket)
    } else {
      throw TransportError(.connect, "\(transfer.job.name): libcurl does not say what it has connected")
    }
    kept = IdleConnection(wire, to: url, through: proxy)
  }

  private func dial(
    _ transfer: Transfer, _ dialer: Dialer, until end: SuspendingClock.Instant
  ) throws(TransportError) -> CURLcode {
    // While libcurl waits it enforces the timeout itself, because it divides the time among the addresses of a host.
    // One second more lets libcurl report what it waited for.
    let end = end + .seconds(1)
    dialer.mustEnd = { transfer.job.isCancelled || end < .now }
    defer { dialer.mustEnd = { false } }
    while true {
      let result = dialer.step()
      if result == CURLE_OK { return CURLE_OK }
      if transfer.job.isCancelled { throw transfer.cancelled() }
      let left = end - SuspendingClock.now
      if left <= .zero {
        throw TransportError(
          .connect, "\(transfer.job.name): \(DialFailure.tooLate(transfer, dialer.route, pool.options))")
      }
      if let result { return result }
      var alarm = curl_waitfd(fd: waiter.inbox.alarm.descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
      var ready: Int32 = 0
      let limit = min(left.pollTime, StalledServers.shortest)
      pool.whileWaiting { _ = curl_multi_poll(dialer.multi, &alarm, 1, limit, &ready) }
      if ready == 0 { waiter.noteStall(transfer) }
      if alarm.revents != 0 { waiter.inbox.alarm.lower() }
    }
  }

  /// Makes a connection for later requests, unless there is one already.
  func connectAhead(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) {
    let url = transfer.job.request.url
    if isKept(for: url, through: proxy) { return }
    do throws(TransportError) {
      try connect(transfer, through: proxy)
      kept?.wasIdle = true
    } catch {
      let words = String(error.message.dropFirst(transfer.job.name.count))
      if error.code != .cancelled { failedAhead = (url, .now, TransportError(error.code, words, cause: error.cause)) }
      throw error
    }
  }

  /// The failure of a connection that was made ahead is reported by the next request to this server, within a second,
  /// and only once.
  private func checkAhead(_ transfer: Transfer) throws(TransportError) {
    guard let (url, since, error) = failedAhead.take(), SuspendingClock.now - since < .seconds(1),
      url.isAtServer(of: transfer.job.request.url)
    else { return }
    throw TransportError(error.code, transfer.job.name + error.message, cause: error.cause)
  }

  /// The stored connection has nothing to send, and is closed in the ordinary way from now on.
  func rest() {
    checkIdle()
    kept?.discards(false)
    if case .sealed(let channel)? = kept?.wire { channel.rest() }
  }

  /// Closes the stored connection, if there is one.
  func letGo() {
    checkIdle()
    kept.take()?.wire.close()
  }

  /// Few servers keep an idle connection open for longer.
  private static let longestIdle = Duration.seconds(50)

  /// Examines the stored connection, if a request was sent over it. false: it cannot be used again and was closed.
  @discardableResult func checkIdle() -> Bool {
    guard let kept else { return false }
    // A connection that was made ahead has no response to wait for.
    if kept.exchanges == 0 { return true }
    kept.idleTime = SuspendingClock.now - kept.since
    if note(kept.wire.idleState, of: kept) { return true }
    self.kept = nil
    kept.wire.close()
    return false
  }

  /// Reports what the server has done since the last exchange of `connection`. Returns whether it has done nothing.
  func note(_ state: IdleState, of connection: IdleConnection) -> Bool {
    switch state {
    case .quiet: return true
    case .closed: break
    case .reset: noteLoss(of: connection)
    case .responded: pool.habits.noteMixedResponses(connection.url)
    }
    return false
  }

  /// Called when a connection was lost without a response to its last request: the response to the request before it
  /// may have been that to an earlier one, and it may have been lost too. An idle connection that is merely closed has
  /// usually been idle for longer.
  func noteLoss(of connection: IdleConnection) {
    guard let upload = connection.lastUpload, connection.idleTime < .seconds(2) else { return }
    pool.habits.doubt(upload, at: connection.url)
  }
}
