import Blobs

/// Sends one request and gives one answer.
public protocol Transport: Sendable {
  /// Sends `request` with `body`, which is opened anew, and returns the final answer, whatever its status.
  ///
  /// Never retries and follows no redirect. A body of known length goes with `Content-Length`, any other chunked.
  /// Cancelling the task ends the exchange at once with `.cancelled`. After a throw nothing is known of what the
  /// server did.
  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse
}

/// A transport that finds out how many requests should go at once.
public protocol AdaptiveTransport: Transport {
  /// false: it was told how many, and finds nothing out.
  var adapts: Bool { get }
  /// What it has found, to begin with the next time; nil: nothing yet.
  var learned: LearnedWidth? { get }
  /// What an earlier run has found, of the host that requests will go to. To be called before they do.
  func expect(_ learned: LearnedWidth)
  /// Requests with bodies will follow to the server of `url`, at most `count` at once, after what is asked there first. One
  /// connection is made now; more where nothing comes back for a while, since a distant server takes its time for each.
  func expect(bodiesAt url: HTTPURL, atMost count: Int)
  /// `follower` is called with the number that may go at once now, and with every new one, on any thread.
  func follow(_ follower: @escaping @Sendable (Int) -> Void)
}

/// What happens while a request is under way. The closures run on the worker's thread and must be short.
public struct Exchange: Sendable {
  /// Body bytes handed to the connection since the last call; not yet the server's.
  public var sent: @Sendable (Int) -> Void
  /// Every 1xx answer but 100.
  public var interim: @Sendable (HTTPHead) -> Void
  /// Streams the content of a 2xx answer instead of collecting it; blocking here is backpressure, throwing ends it
  /// with `.source`. The content of any other answer is collected all the same: it says what was wrong.
  public var received: (@Sendable (UnsafeRawBufferPointer) throws(BlobError) -> Void)?
  /// The head of a 2xx answer, before the first of its content goes to `received`; not called where there is no content.
  /// Throwing ends it with `.source`.
  public var began: (@Sendable (HTTPHead) throws(BlobError) -> Void)?
  /// Fields that follow the body, asked for once all of it was read; it goes in chunks then, whatever its length. The
  /// request must announce them by `Trailer`. A transport that knows none sends none: the server misses what was
  /// announced. RFC 9112 §7.1.2.
  public var trailers: (@Sendable () -> HTTPHeaders)?
  /// The transport sends the request once only. Otherwise it sends an idempotent request a second time, unasked, where
  /// a connection that was kept open turns out to be closed. The first copy may then still be delivered by a proxy.
  public var isSentOnce = false
  /// Completes the request before it is sent, with fields that depend on the body, such as its checksum. It may read the
  /// source, and block as reading may: it is cancelled as the reading of a body is. What it throws ends the exchange with
  /// `.source`. A transport calls it once for each request, before it sends the first byte.
  public var prepare: Preparation?
  public typealias Preparation = @Sendable (inout HTTPRequest, Cancellation) throws(BlobError) -> Void

  public init(
    sent: @escaping @Sendable (Int) -> Void = { _ in },
    interim: @escaping @Sendable (HTTPHead) -> Void = { _ in },
    received: (@Sendable (UnsafeRawBufferPointer) throws(BlobError) -> Void)? = nil,
    began: (@Sendable (HTTPHead) throws(BlobError) -> Void)? = nil
  ) {
    self.sent = sent
    self.interim = interim
    self.received = received
    self.began = began
  }
}

/// Why no answer came. A status of 500 is an answer, not one of these.
public struct TransportError: Error, Sendable, CustomStringConvertible {
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    public let description: String
    private init(_ name: String) { description = name }

    /// The host name has no address, or the name server did not answer.
    public static let resolve = Code("resolve")
    /// No connection: refused, unreachable, no answer.
    public static let connect = Code("connect")
    /// The proxy refuses us, or to connect us: it asks for credentials, or has rules.
    public static let proxy = Code("proxy")
    /// Nothing here vouches for the server's certificate: it is self-signed, or of an authority that is not trusted.
    public static let untrusted = Code("untrusted")
    /// The certificate is wrong in itself (another name, expired), or the conversation about it failed.
    public static let tls = Code("tls")
    /// The connection broke while something was sent or received.
    public static let broken = Code("broken")
    /// Nothing moved for the limit "no progress", or no answer came within "the server is finishing".
    public static let timeout = Code("timeout")
    /// What came is not HTTP, or more than we take.
    public static let badResponse = Code("badResponse")
    /// The body's source failed; `cause` is its `BlobError`.
    public static let source = Code("source")
    /// The request itself cannot be sent: a URL or header that is none.
    public static let badRequest = Code("badRequest")
    /// The task was cancelled.
    public static let cancelled = Code("cancelled")
  }

  public var code: Code
  /// Operation, place (URL without query) and numbers; no secret.
  public var message: String
  public var cause: BlobError?

  public init(_ code: Code, _ message: String, cause: BlobError? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  public var description: String { message }
}

/// How many requests at once a host was found to be worth.
public struct LearnedWidth: Sendable, Hashable {
  public var width: Int
  /// It was asked too much once, and said so.
  public var wasRefused: Bool

  public init(width: Int, wasRefused: Bool = false) {
    self.width = width
    self.wasRefused = wasRefused
  }
}
