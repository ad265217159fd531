#if os(Linux)
  import BlobHTTP
  import CCurl
  import CSSL
  import Platform

  extension ConnectionWorker {
    /// What libcurl is to connect to for `url`, and whether TLS is ours to begin: not where a proxy is asked, nor where a
    /// name has to be made ASCII.
    func place(to url: HTTPURL, through proxy: Proxy?) -> (HTTPURL, isOurs: Bool) {
      guard url.scheme == "https", proxy == nil, url.host.utf8.allSatisfy({ $0 < 0x80 }),
        let plain = HTTPURL("http://\(url.host):\(url.port)/")
      else { return (url, false) }
      return (plain, true)
    }

    /// Begins TLS on a socket that is connected. What fails has closed it.
    func begin(
      on socket: Int32, _ transfer: Transfer, until end: SuspendingClock.Instant
    ) throws(TransportError) -> Connection {
      let url = transfer.job.request.url
      let name = url.host.asCertified
      let tls: TLSContext
      do throws(TLSProblem) { tls = try pool.tls() } catch {
        Platform.close(socket)
        throw TransportError(error.code, "\(transfer.job.name): \(error.words)")
      }
      guard let (ssl, goesOn) = tls.connection(to: name, url.origin, on: socket) else {
        Platform.close(socket)
        throw TransportError(.tls, "\(transfer.job.name): '\(name)' cannot be asked for its certificate")
      }
      do throws(TransportError) {
        try shakeHands(ssl, socket, transfer, until: end)
        guard let channel = TLSChannel(ssl, on: socket, pool.smallBuffers, owner: (tls, url.origin)) else {
          throw TransportError(.tls, "\(transfer.job.name): TLS cannot be begun")
        }
        self.channel = channel
        return .sealed(channel)
      } catch {
        SSL_free(ssl)
        Platform.close(socket)
        guard goesOn, error.code == .tls || error.code == .untrusted else { throw error }
        // Some servers break off what would go on with a session: that is no last word yet.
        tls.forgo(url.origin)
        throw TransportError(.connect, error.message)
      }
    }

    private func shakeHands(
      _ ssl: OpaquePointer, _ socket: Int32, _ transfer: Transfer, until end: SuspendingClock.Instant
    ) throws(TransportError) {
      while true {
        ERR_clear_error()
        let result = SSL_connect(ssl)
        if result == 1 { return }
        let events: Int32
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: events = POLLIN
        case SSL_ERROR_WANT_WRITE: events = POLLOUT
        default:
          let problem = TLSProblem(ssl, transfer.server, transfer.job.request.url.host, caFile: options.caFile)
          ERR_clear_error()
          throw TransportError(problem.code, "\(transfer.job.name): \(problem.words)")
        }
        if transfer.job.isCancelled { throw cancelled(transfer) }
        let left = end - SuspendingClock.now
        if left <= .zero {
          throw TransportError(.connect, "\(transfer.job.name): \(tooLate(transfer))")
        }
        _ = wait(for: .plain(socket), events, atMost: left.pollTime)
      }
    }
  }

  extension String {
    /// As a certificate has it: an IPv6 address without brackets, a name without the dot of the root.
    fileprivate var asCertified: String {
      if first == "[" { return String(dropFirst().dropLast()) }
      return last == "." ? String(dropLast()) : self
    }
  }
#endif
