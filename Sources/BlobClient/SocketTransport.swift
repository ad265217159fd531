import BlobHTTP
import Blobs
import CCurl
import CSSL

/// An HTTP/1.1 transport with a few worker threads, each with a persistent connection. libcurl makes the connections.
///
/// A body is read from its source on the worker's thread, straight into the buffer it is sent from. Workers are started
/// on demand and reused; requests that find none idle wait in a queue. Releasing the transport ends the workers.
public final class SocketTransport: Transport {
  private let pool: ConnectionPool

  /// Creates a transport. It connects to nothing and starts no thread before the first request.
  public init(_ options: Options = Options()) { pool = ConnectionPool(options) }

  deinit { pool.close() }

  /// The names and the versions of the libraries that connect and encrypt, like `libcurl 7.88.1`.
  package static var libraryVersions: [String] {
    // "OpenSSL 3.0.15 3 Sep 2024"
    let tls = String(cString: OpenSSL_version(OPENSSL_VERSION)).split(separator: " ").prefix(2)
    return [
      "libcurl \(String(cString: curl_version_info(fb_curl_version_now()).pointee.version))",
      tls.joined(separator: " "),
    ]
  }

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
  public var learned: LearnedConcurrency? { pool.learned }
  public func expect(_ learned: LearnedConcurrency) { pool.expect(learned) }
  public func expect(bodiesAt url: HTTPURL, atMost count: Int) {
    if adapts { pool.expect(bodiesAt: url, atMost: count) }
  }
  public func follow(_ follower: @escaping @Sendable (Int) -> Void) { pool.follow(follower) }
}

extension SocketTransport: MixedResponseDetector {
  package var hasDoubts: Bool { pool.habits.hasDoubts.load(ordering: .relaxed) }
  package func mixesResponses(at url: HTTPURL) -> Bool { pool.habits.mixesResponses(url) }
  package func noteMixedResponses(at url: HTTPURL) { pool.habits.noteMixedResponses(url) }
  package func takeDoubted(at url: HTTPURL) -> [Int64] { pool.habits.takeDoubted(at: url) }
  package func checkIdleConnections(at url: HTTPURL) async { await pool.checkIdle(at: url) }
}

extension SocketTransport {
  /// How a transport connects, waits and buffers. The transport enforces every timeout with its own clock.
  public struct Options: Sendable {
    /// Maximum number of concurrent transfers.
    public var connections: Int
    /// true: the transport adjusts the number of concurrent requests to the link and the server; false: it always
    /// allows `connections`.
    public var adapts: Bool
    /// Bytes read and sent at a time; nil: 64 to 512 KiB, less with more concurrent transfers.
    public var uploadBuffer: Int?
    /// PEM file of certificates to trust instead of the system's, for servers and for proxies; nil: the system's.
    public var caFile: String?
    /// false accepts any certificate: for tests only.
    public var verifiesTLS: Bool
    /// Maximum time without progress in either direction before `.timeout`. Time spent in the source does not count.
    public var noProgress: Duration
    /// Maximum time from the last byte of the request to the response before `.timeout`. Each interim response (102,
    /// 104) restarts this time, up to 12 times the limit in total. If an error response comes before the request is
    /// complete, its rest has this much time; after that the response counts as it is. Requests that change nothing
    /// (GET, HEAD, OPTIONS, PROPFIND) wait for the response with the limit `noProgress`; for them `finishing` limits
    /// the time for the whole response, unless its content goes to `Exchange.received`.
    public var finishing: Duration
    /// Maximum time for a connection, including name look-up and TLS handshake, before `.connect`.
    public var connect: Duration
    /// Limits the speed of the bodies that are sent and of content that goes to `Exchange.received`, together; several
    /// transports may share one limiter. nil: no limit.
    public var limiter: RateLimiter?
    /// The value of `User-Agent`, unless a request has its own.
    public var userAgent: String
    /// nil: `https_proxy`, `http_proxy` and `all_proxy` apply. No proxy is used for loopback addresses and the hosts in
    /// `no_proxy`.
    public var proxy: Proxy?
    /// The environment variables for proxies; nil: those of this process.
    public var environment: [String: String]?
    /// Called on a worker's thread with the certificate of each TLS handshake that this process does itself. Any
    /// certificate is accepted then, so no request may carry a secret. nil: certificates are verified as usual.
    package var inspectsCertificates: (@Sendable (CertificateReport) -> Void)?

    /// The proxy for a request to `url`: `proxy`, or the environment's; nil: the request goes directly to its server.
    package func proxy(for url: HTTPURL) throws(TransportError) -> Proxy? {
      try ProxyRules(proxy, environment: environment).proxy(for: url)
    }

    /// Creates options. `connections` must be above 0; the properties say what each option does.
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
