import BlobHTTP
import Blobs
import CCurl
import Platform

extension ConnectionWorker {
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
    let end = SuspendingClock.now + options.connect
    let dialer = Dialer(try Route(to: url, through: proxy, for: transfer.job.name), options)
    let result = try dial(transfer, dialer, until: end)
    if result != CURLE_OK { throw error(transfer, dialer, proxy, result) }
    let wire: Connection
    if dialer.route.isNested, let socket = dialer.socket {
      wire = .nested(dialer, socket: socket)
    } else if let socket = dialer.takeSocket() {
      wire =
        try dialer.route.secured.map { peer throws(TransportError) in
          try begin(peer, on: socket, transfer, until: end)
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
      if transfer.job.isCancelled { throw cancelled(transfer) }
      let left = end - SuspendingClock.now
      if left <= .zero { throw TransportError(.connect, "\(transfer.job.name): \(tooLate(transfer, dialer.route))") }
      if let result { return result }
      var alarm = curl_waitfd(fd: inbox.alarm.descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
      var ready: Int32 = 0
      let limit = min(left.pollTime, StalledServers.shortest)
      pool.whileWaiting { _ = curl_multi_poll(dialer.multi, &alarm, 1, limit, &ready) }
      if ready == 0 { noteStall() }
      if alarm.revents != 0 { inbox.alarm.lower() }
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

  /// Closes the stored connection, if there is one.
  func letGo() {
    checkIdle()
    kept.take()?.wire.close()
  }

  /// Few servers keep an idle connection open for longer.
  private static let longestIdle = Duration.seconds(50)
}
