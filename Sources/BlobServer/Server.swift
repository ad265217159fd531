import Blobs
import Platform

/// Receives files over HTTP into a folder, and serves what has arrived.
///
/// `PUT`, tus 1.0 and `GET` with ranges. A file appears under its name whole or not at all, and never over other bytes
/// unless the client asks for it; unfinished uploads survive a kill of the server. Bodies are never held in memory.
public final class Server: Sendable {
  private enum State { case running, stopping, stopped }
  private let state = Monitor(State.running)
  let service: Service
  private let loops: [EventLoop]
  private let listener: Listener
  public let port: UInt16
  /// `http://127.0.0.1:8080/`, or with `https`.
  public let url: String

  /// What was damaged in the folder's `.fullbore` when the server started, and what has become of it: a line each.
  public let notices: [String]

  /// Listens when it returns. Throws when the folder is not there or is served already, and when the address or port
  /// cannot be had, or the certificate and its key are none. Raises the process's limit of open files towards its hard limit, since every connection needs one.
  /// Blocks shortly.
  public convenience init(_ options: ServerOptions) throws(ServerError) { try self.init(options, mostConnections: nil) }

  /// `mostConnections`: at a time; nil: as many as the limit of open files allows.
  init(_ options: ServerOptions, mostConnections: Int?) throws(ServerError) {
    let tls: TLSContext? = if let files = options.tls { try TLSContext(files) } else { nil }
    let files = raiseFileLimit()
    let listener = try Listener(options.address, options.port)
    let store = try FileStore(
      options.folder, expire: options.expire, maxTotal: options.maxTotal, readOnly: options.isReadOnly)
    let service = Service(options, store, HostRule(listener, options))
    // An upload needs two descriptors; what is left is for everything else.
    let most = (mostConnections ?? max(64, (files - 64) / 2)) / Self.threads
    var loops: [EventLoop] = []
    for _ in 0..<Self.threads {
      loops.append(try EventLoop(service, listener.socket, tls, most: most, mostLingering: most / 8))
    }
    for (number, loop) in loops.enumerated() { loop.other = loops[(number + 1) % loops.count] }
    self.loops = loops
    self.listener = listener
    port = listener.port
    url = "\(options.tls == nil ? "http" : "https")://\(listener.host):\(listener.port)/"
    self.service = service
    notices = store.notices
    service.start()
    for loop in loops { loop.start() }
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
    for loop in loops { loop.post(.stopAccepting) }
    // Who connects from now on is refused, although the descriptor stays open.
    shutdown(listener.socket.number, Socket.shutBoth)
    let deadline = ContinuousClock.now + grace
    while service.requests.load(ordering: .sequentiallyConsistent) > 0, ContinuousClock.now < deadline { usleep(5_000) }
    service.store.interrupt()
    for loop in loops { loop.post(.cut) }
    for loop in loops { loop.join() }
    service.stop()
    service.store.close()
    state.update { $0 = .stopped }
  }

  deinit { stop(grace: .zero) }

  /// Connections that are served, or about to be.
  var connectionCount: Int { loops.reduce(0) { $0 + $1.connectionCount.load(ordering: .relaxed) } }

  private static let threads = 2
}
