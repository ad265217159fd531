import BlobTesting
import Blobs

/// A proxy on 127.0.0.1 for HTTP (absolute URLs, CONNECT), SOCKS4(a) and SOCKS5, detected by the first byte.
///
/// It connects to one local port, whatever host is requested, so that tests can use names without an address.
public final class ProxyPeer: Sendable {
  public enum Mode: Sendable {
    case willing
    /// Requires these credentials.
    case wants(user: String, password: String)
    /// Responds to every request with this status; SOCKS clients get "not allowed".
    case refuses(status: Int)
    /// Accepts connections and reads, but never responds.
    case silent
  }

  public struct Seen: Sendable {
    public var connections = 0
    /// The `host:port` of every connection request that was granted.
    public var targets: [String] = []
    /// Request heads and credentials sent to the proxy itself, including secrets.
    public var heads: [String] = []
  }

  public let port: Int
  private let listener: Int32
  private let state: Monitor<Seen>

  /// `target` is the port on 127.0.0.1 to which all connections are forwarded.
  public init(to target: Int, _ mode: Mode = .willing) {
    let (listener, port) = Loopback.listen()
    let state = Monitor(Seen())
    (self.listener, self.port, self.state) = (listener, port, state)
    SystemThread.start("proxy-accept") {
      while let client = Loopback.accept(listener) {
        state.update { $0.connections += 1 }
        SystemThread.start("proxy") { ProxiedClient(client, target, mode, state).run() }
      }
      Loopback.close(listener)
    }
  }

  deinit { Loopback.shut(listener) }

  public var seen: Seen { state.update { $0 } }
}
