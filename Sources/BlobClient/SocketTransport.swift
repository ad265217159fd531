import BlobHTTP
import Blobs

/// HTTP/1.1 over a few workers, each a thread with a connection that is kept alive. libcurl makes the connections.
///
/// A body is read from its source on the worker's thread, straight into the buffer it is sent from. Workers are started
/// as they are needed and kept; what finds none free waits its turn. Let go of the transport to end them.
public final class SocketTransport: Transport {
  private let pool: ConnectionPool

  public init(_ options: Options = Options()) { pool = ConnectionPool(options) }

  deinit { pool.close() }

  public func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    if let problem = request.problem(with: body) { throw problem }
    let job = QueuedExchange(request, body, on, in: pool)
    let result = await withTaskCancellationHandler {
      await withUnsafeContinuation { (waiter: UnsafeContinuation<QueuedExchange.Answer, Never>) in
        job.start { waiter.resume(returning: $0) }
      }
    } onCancel: {
      job.cancel()
    }
    return try result.get()
  }
}

extension SocketTransport: AdaptiveTransport {
  public var adapts: Bool { pool.options.adapts }
  public var learned: LearnedWidth? { pool.learned }
  public func expect(_ learned: LearnedWidth) { pool.expect(learned) }
  public func expect(bodiesAt url: HTTPURL, atMost count: Int) {
    if adapts { pool.expect(bodiesAt: url, atMost: count) }
  }
  public func follow(_ follower: @escaping @Sendable (Int) -> Void) { pool.follow(follower) }
}

extension SocketTransport {
  /// How a transport connects, waits and buffers. Every limit is kept by the transport's own clock.
  public struct Options: Sendable {
    /// Transfers under way at once, at the most.
    public var connections: Int
    /// As many go at once as the link and the server are found to gain by; false: `connections`, from the first on.
    public var adapts: Bool
    /// Bytes read and sent at a time; nil: 64 to 512 KiB, less the more transfers are under way.
    public var uploadBuffer: Int?
    /// Certificates to trust, PEM, instead of the system's: the server's, and the proxy's.
    public var caFile: String?
    /// false accepts any certificate: for tests only.
    public var verifiesTLS: Bool
    /// For as long nothing may move, in either direction, before `.timeout`. Time spent in the source does not count.
    public var noProgress: Duration
    /// For as long the server may take to answer once it has everything, before `.timeout`. Each interim head (102, 104) that
    /// comes says that the server is at work, and begins the limit anew, for 12 times the limit at the most. A refusal that
    /// comes before the server has everything has this limit for its rest, after which it counts as it is. Requests that change
    /// nothing (GET, HEAD, OPTIONS, PROPFIND) have `noProgress` for this too; for them it is the limit for the whole answer,
    /// unless its content goes to `Exchange.received`.
    public var finishing: Duration
    /// For as long a connection may take, name look-up and TLS included, before `.connect`.
    public var connect: Duration
    /// Bodies are sent no faster than this allows, which other transports may share; nil: as fast as they go.
    public var limiter: RateLimiter?
    public var userAgent: String
    /// nil: what `https_proxy`, `http_proxy` and `all_proxy` say. Never used for loopback, nor for what `no_proxy` names.
    public var proxy: Proxy?
    /// Where the variables about proxies are read; nil: the environment of this process.
    public var environment: [String: String]?

    public init(
      connections: Int = 64, adapts: Bool = true, uploadBuffer: Int? = nil, caFile: String? = nil,
      verifiesTLS: Bool = true,
      noProgress: Duration = .seconds(60), finishing: Duration = .seconds(300), connect: Duration = .seconds(30),
      userAgent: String = "fullbore/0.1.0", proxy: Proxy? = nil,
      environment: [String: String]? = nil, limiter: RateLimiter? = nil
    ) {
      precondition(connections > 0)
      self.connections = connections
      self.adapts = adapts
      self.uploadBuffer = uploadBuffer
      self.caFile = caFile
      self.verifiesTLS = verifiesTLS
      self.noProgress = noProgress
      self.finishing = finishing
      self.connect = connect
      self.userAgent = userAgent
      self.proxy = proxy
      self.environment = environment
      self.limiter = limiter
    }
  }
}
