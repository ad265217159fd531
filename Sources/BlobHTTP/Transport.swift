import Blobs

/// Sends one request and returns its response.
public protocol Transport: Sendable {
  /// Sends `request` with `body`, which is opened for this call, and returns the final response, whatever its status.
  ///
  /// Does not retry or follow redirects. A body of known length is sent with `Content-Length`, any other is chunked.
  /// Cancelling the task ends the exchange at once with `.cancelled`. After a throw it is unknown what the server did.
  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse
}

/// A transport that adapts the number of concurrent requests.
public protocol AdaptiveTransport: Transport {
  /// false if the concurrency is fixed by the configuration.
  var adapts: Bool { get }
  /// The concurrency found so far, for the next run to start with; nil if nothing was measured yet.
  var learned: LearnedConcurrency? { get }
  /// Sets the result of an earlier run for the host of the coming requests. Call this before the first request.
  func expect(_ learned: LearnedConcurrency)
  /// Announces requests with bodies to the server of `url`, at most `count` at once, after an initial request there.
  /// The transport opens one connection now. It opens more if no response arrives for a while, because connecting to a
  /// distant server takes time.
  func expect(bodiesAt url: HTTPURL, atMost count: Int)
  /// Calls `follower` with the current number of concurrent requests and with every new one, on any thread.
  func follow(_ follower: @escaping @Sendable (Int) -> Void)
}

/// A transport that notices servers, and proxies before them, that respond to a request twice. The second response may
/// then be taken for the response to the next request, which may have stored nothing.
package protocol MixedResponseDetector: Transport {
  /// false: the other members have nothing to report, of any server. Costs next to nothing.
  var hasDoubts: Bool { get }
  /// Whether the server of `url` has responded to a request twice. From then on each connection to it carries one
  /// request.
  func mixesResponses(at url: HTTPURL) -> Bool
  /// Reports that a success of this server was found to be wrong.
  func noteMixedResponses(at url: HTTPURL)
  /// Removes and returns the uploads to this server of which a success may have been the response to another request.
  /// See `Exchange.upload`.
  func takeDoubted(at url: HTTPURL) -> [Int64]
  /// Looks for responses that have arrived over idle connections to this server though no request has asked for them.
  /// Returns once they are known to the other members.
  func checkIdleConnections(at url: HTTPURL) async
}

/// Callbacks and options of one request. The closures run on the worker's thread and must return quickly.
public struct Exchange: Sendable {
  /// Body bytes handed to the connection since the last call. The server may not have received them yet.
  public var sent: @Sendable (Int) -> Void
  /// Called for every 1xx response except 100.
  public var interim: @Sendable (HTTPHead) -> Void
  /// Streams the content of a 2xx response instead of collecting it. Blocking here is backpressure; throwing ends the
  /// exchange with `.source`. The content of other responses is still collected, because it describes the error.
  public var received: (@Sendable (UnsafeRawBufferPointer) throws(BlobError) -> Void)?
  /// Called with the head of a 2xx response, before its first content goes to `received`. Not called if there is no
  /// content. Throwing ends the exchange with `.source`.
  public var began: (@Sendable (HTTPHead) throws(BlobError) -> Void)?
  /// Returns fields to send after the body; called once all of the body was read. The body is then chunked, even if its
  /// length is known. The request must announce the fields with `Trailer`. A transport without support for trailers
  /// does not send them, so the server misses fields that were announced. RFC 9112 §7.1.2.
  public var trailers: (@Sendable () -> HTTPHeaders)?
  /// The transport sends the request only once. Otherwise it sends an idempotent request again if an idle connection
  /// turns out to be closed. A proxy may then still deliver the first copy.
  public var isSentOnce = false
  /// The request is sent over a connection that no other request has used. So every response on it belongs to this request,
  /// also one that breaks off (`TransportError.head`).
  package var needsNewConnection = false
  /// The upload that the body belongs to, as a number that the caller has chosen; nil: none.
  package var upload: Int64?
  /// Completes the request before it is sent, with fields that depend on the body, such as its checksum. It may read
  /// the source and block, and it is cancelled like reading a body. An error that it throws ends the exchange with
  /// `.source`. The transport calls it once per request, before it sends the first byte.
  public var prepare: Preparation?
  /// The type of `prepare`: changes the request, on the worker's thread, and may block.
  public typealias Preparation = @Sendable (inout HTTPRequest, Cancellation) throws(BlobError) -> Void

  /// Creates callbacks for one request. The properties say when each is called.
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

/// Why there is no response. A response with status 500 is not an error of this type.
public struct TransportError: Error, Sendable, CustomStringConvertible {
  /// Which layer failed.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    public let description: String
    private init(_ name: String) { description = name }

    /// The host name has no address, or the name server did not answer.
    public static let resolve = Code("resolve")
    /// No connection was made: refused, unreachable, or no reply.
    public static let connect = Code("connect")
    /// The proxy refuses the client or the connection: it requires credentials, or its rules forbid the target.
    public static let proxy = Code("proxy")
    /// The server's certificate is not trusted: it is self-signed, or its authority is unknown.
    public static let untrusted = Code("untrusted")
    /// The certificate is invalid (wrong name, expired), or the TLS handshake failed.
    public static let tls = Code("tls")
    /// The connection broke while something was sent or received.
    public static let broken = Code("broken")
    /// No bytes were transferred within the "no progress" limit, or no response came within the limit "the server is
    /// finishing".
    public static let timeout = Code("timeout")
    /// The response is not HTTP, or its head exceeds a limit.
    public static let badResponse = Code("badResponse")
    /// The server has answered, with more content than the transport keeps in memory. The same request would be
    /// answered so again, and may have been carried out.
    public static let longResponse = Code("longResponse")
    /// The body's source failed; `cause` is its `BlobError`.
    public static let source = Code("source")
    /// The request cannot be sent because its URL or a header is invalid.
    public static let badRequest = Code("badRequest")
    /// The task was cancelled.
    public static let cancelled = Code("cancelled")
  }

  /// Which layer failed.
  public var code: Code
  /// Operation, URL without query, and numbers. Contains no secrets.
  public var message: String
  /// The error of the source of the body, or of the closure that received the content; nil for all other reasons.
  public var cause: BlobError?
  /// No byte of a response arrived before the connection was closed. A server that is overloaded may do so, and a tunnel
  /// or load balancer whose server is away.
  public var isUnanswered: Bool
  /// The head of a response that came after the whole request was sent, and whose content did not arrive or was not read:
  /// the server has done what the status says. nil: there was no such response, or the transport does not tell.
  public var head: HTTPHead?

  /// Creates an error, for transports and tests.
  public init(_ code: Code, _ message: String, cause: BlobError? = nil, isUnanswered: Bool = false) {
    self.code = code
    self.message = message
    self.cause = cause
    self.isUnanswered = isUnanswered
  }

  public var description: String { message }
}

/// The number of concurrent requests that was found best for a host.
public struct LearnedConcurrency: Sendable, Hashable {
  /// The number of concurrent requests, at least 1.
  public var width: Int
  /// The server has refused requests because there were too many.
  public var wasRefused: Bool

  /// Creates a value, for example from what an earlier run has stored.
  public init(width: Int, wasRefused: Bool = false) {
    self.width = width
    self.wasRefused = wasRefused
  }
}
