#if os(Linux)
  import BlobHTTP
  import Blobs
  import CCurl
  import Platform

  extension ConnectionWorker {
    /// A connection while no request is under way on it.
    final class IdleConnection {
      let wire: Connection
      /// Some place at its server.
      let url: HTTPURL
      let proxy: Proxy?
      var since = SuspendingClock.now
      /// It was idle, and the server may have closed it before it hears of the next request.
      var wasIdle = false
      /// `receive(waiting:)` is possible on it now.
      var waits = false

      init(_ wire: Connection, to url: HTTPURL, through proxy: Proxy?) {
        self.wire = wire
        self.url = url
        self.proxy = proxy
      }

      /// A body that is not small is sent by calls that must not wait.
      func lets(wait: Bool) {
        if waits == wait || !wire.canWait { return }
        wire.lets(wait: wait)
        waits = wait
      }
    }

    /// Whether the connection there is leads to the server, and nobody has closed it.
    func isKept(for url: HTTPURL, through proxy: Proxy?) -> Bool {
      guard let kept, kept.url.isAtServer(of: url), kept.proxy == proxy else { return false }
      return SuspendingClock.now - kept.since < Self.longestIdle && kept.wire.isQuiet
    }

    /// Makes a connection in place of what there is.
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
      // libcurl keeps the limit by itself wherever it waits, since it shares it out among the addresses of a host. A moment
      // more lets it say what it waited for.
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
        var alarm = curl_waitfd(fd: door.alarm.descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
        var ready: Int32 = 0
        pool.whileWaiting { _ = curl_multi_poll(dialer.multi, &alarm, 1, left.pollTime, &ready) }
        if alarm.revents != 0 { door.alarm.lower() }
      }
    }

    /// For requests that come later; unless there is one already.
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

    /// What came of a connection that was made ahead is news to the request that came next, and to none after it.
    private func checkAhead(_ transfer: Transfer) throws(TransportError) {
      guard let (url, since, error) = failedAhead.take(), SuspendingClock.now - since < .seconds(1),
        url.isAtServer(of: transfer.job.request.url)
      else { return }
      throw TransportError(error.code, transfer.job.name + error.message, cause: error.cause)
    }

    /// Closes the connection that is kept, if there is one.
    func letGo() { kept.take()?.wire.close() }

    /// Longer is hardly anyone's patience with a connection that says nothing.
    private static let longestIdle = Duration.seconds(50)
  }
#endif
