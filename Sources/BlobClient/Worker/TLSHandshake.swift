import BlobHTTP
import CSSL
import Platform

/// The TLS handshake on a connected socket.
struct TLSHandshake {
  let peer: Route.Peer
  let socket: Int32
  let transfer: Transfer
  /// When the handshake has failed.
  let end: SuspendingClock.Instant
  let waiter: SocketWaiter

  /// Performs the handshake. Closes the socket if it throws.
  func connection() throws(TransportError) -> Connection {
    let pool = waiter.pool
    let tls: TLSContext
    do throws(TLSProblem) { tls = try pool.tls() } catch {
      Platform.close(socket)
      throw TransportError(error.code, "\(transfer.job.name): \(error.words)")
    }
    guard let (ssl, goesOn) = tls.connection(to: peer.name, peer.origin, on: socket) else {
      Platform.close(socket)
      throw TransportError(.tls, "\(transfer.job.name): '\(peer.name)' cannot be asked for its certificate")
    }
    do throws(TransportError) {
      if let inspect = tls.inspect {
        let log = CertificateLog(of: ssl)
        defer { log.end() }
        try shakeHands(ssl)
        if let report = log.report() { inspect(report) }
      } else {
        try shakeHands(ssl)
      }
      guard let channel = TLSChannel(ssl, on: socket, pool.smallBuffers, tls, peer.origin) else {
        throw TransportError(.tls, "\(transfer.job.name): TLS cannot be begun")
      }
      return .sealed(channel)
    } catch {
      SSL_free(ssl)
      Platform.close(socket)
      guard goesOn, error.code == .tls || error.code == .untrusted else { throw error }
      // Some servers abort a handshake that resumes a session; the caller can try again without one.
      tls.forgo(peer.origin)
      throw TransportError(.connect, error.message)
    }
  }

  private func shakeHands(_ ssl: OpaquePointer) throws(TransportError) {
    let options = waiter.pool.options
    while true {
      ERR_clear_error()
      let result = SSL_connect(ssl)
      if result == 1 { return }
      let events: Int32
      switch SSL_get_error(ssl, result) {
      case SSL_ERROR_WANT_READ: events = POLLIN
      case SSL_ERROR_WANT_WRITE: events = POLLOUT
      default:
        let problem = TLSProblem(ssl, peer.label, peer.name, caFile: options.caFile)
        ERR_clear_error()
        throw TransportError(problem.code, "\(transfer.job.name): \(problem.words)")
      }
      if transfer.job.isCancelled { throw transfer.cancelled() }
      let left = end - SuspendingClock.now
      if left <= .zero {
        throw TransportError(
          .connect, "\(transfer.job.name): no connection to \(peer.label) within \(options.connect)")
      }
      _ = waiter.wait(for: .plain(socket), events, atMost: left.pollTime, transfer)
    }
  }
}
