import Blobs
import Platform

/// Receives files over HTTP into a folder, and serves what has arrived.
///
/// `PUT`, tus 1.0 and `GET` with ranges. A file appears under its name whole or not at all, and never over other bytes
/// unless the client asks for it; unfinished uploads survive a kill of the server. Bodies are never held in memory.
public final class Server: Sendable {
  private enum State { case running, stopping, stopped }
  private let state = Monitor(State.running)
  private let service: Service
  private let daemon: Daemon
  public let port: UInt16
  /// `http://127.0.0.1:8080/`, or with `https`.
  public let url: String

  /// What was damaged in the folder's `.fullbore` when the server started, and what has become of it: a line each.
  public let notices: [String]

  /// Listens when it returns. Throws when the folder is not there or is served already, and when the address or port
  /// cannot be had, or the certificate and its key are none. Raises the process's limit of open files towards its hard limit, since every connection needs one.
  /// Blocks shortly.
  public init(_ options: ServerOptions) throws(ServerError) {
    let identity: TLSIdentity? = if let tls = options.tls { try TLSIdentity(tls) } else { nil }
    let files = raiseFileLimit()
    let listener = try Listener(options.address, options.port)
    let store = try FileStore(
      options.folder, expire: options.expire, maxTotal: options.maxTotal, readOnly: options.isReadOnly)
    let lingering = files / 16
    let service = try Service(options, store, HostRule(listener, options), lingering: lingering)
    // An upload needs two descriptors; what is left is for everything else.
    daemon = try Daemon(
      listener, service, idle: options.idleTimeout, connections: max(64, (files - 64 - lingering) / 2), tls: identity)
    port = listener.port
    url = "\(options.tls == nil ? "http" : "https")://\(listener.host):\(listener.port)/"
    self.service = service
    notices = store.notices
    service.start()
  }

  /// Accepts no more connections, gives requests under way `grace` to end, and closes the rest: what they have
  /// received of resumable uploads stays. Blocks until all is done; may be called again, and from any thread.
  public func stop(grace: Duration) {
    let isFirst = state.update { state in
      if state != .running { return false }
      state = .stopping
      return true
    }
    guard isFirst else { return state.wait { $0 == .stopped ? () : nil } }
    daemon.quiesce()
    let deadline = ContinuousClock.now + grace
    Self.wait { service.gate.isEmpty || ContinuousClock.now >= deadline }
    service.gate.close()
    service.store.interrupt()
    service.pump.stop()
    Self.wait { !service.gate.hasSuspended }
    daemon.stop()
    service.stop()
    service.store.close()
    state.update { $0 = .stopped }
  }

  deinit { stop(grace: .zero) }

  /// Looks again and again: what is waited for happens on libmicrohttpd's threads, at their pace.
  private static func wait(until condition: () -> Bool) {
    while !condition() { usleep(5_000) }
  }
}
