import BlobHTTP
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An upload through URLSession with a blob as its body. The body is sent with its exact length, and again after a
/// redirect (307, 308) or an authentication challenge (401).
///
/// URLSession on Linux cannot do this: it would wait forever or report success for an empty body.
public struct StreamedUpload: Sendable {
  /// The range of a source that is sent as the body. It is opened again for each attempt.
  public var body: BlobSlice
  /// The transport that sends the request, with its configuration.
  public var transport: URLSessionTransport
  /// Maximum of redirects (307 and 308) to follow; the next redirect response is returned. Redirects from `https` to
  /// `http` are not followed. On a redirect to another origin `Authorization` and `Cookie` are removed.
  public var redirects = 5
  /// Called after a 401 with its head. Returns the value of `Authorization` for one more attempt; nil returns the 401
  /// response. Not called after a redirect to another origin.
  public var authorization: (@Sendable (HTTPHead) async -> String?)?
  /// Called on URLSession's thread with the body bytes handed to the connection and the total; `length` is nil if the
  /// total is known only at the end. `sent` starts again at 0 with each attempt.
  public var progress: (@Sendable (_ sent: Int64, _ length: Int64?) -> Void)?

  /// Creates an upload of a slice. Nothing is opened or sent before `send`.
  public init(_ body: BlobSlice, over transport: URLSessionTransport = URLSessionTransport()) {
    self.body = body
    self.transport = transport
  }

  /// Creates an upload of a whole source. Nothing is opened or sent before `send`.
  public init(_ source: any BlobSource, over transport: URLSessionTransport = URLSessionTransport()) {
    self.init(BlobSlice(source), over: transport)
  }

  /// Sends `request`, whose own body is ignored, and returns the final response, whatever its status.
  ///
  /// An error of the source is `.source`, with the source's error as `cause`; this includes a sequential source that
  /// would have to be sent again. Cancelling the task ends the upload at once. After a throw it is unknown what the
  /// server did.
  public func send(_ request: URLRequest) async throws(TransportError) -> HTTPResponse {
    var request = request
    var (redirects, authorization) = (redirects, authorization)
    while true {
      let answer = try await sendOnce(request)
      switch answer.status {
      case 307, 308:
        guard redirects > 0, let next = redirected(request, by: answer) else { return answer }
        redirects -= 1
        // Credentials for this origin are not sent to another one.
        if !next.isSameOrigin(as: request) { authorization = nil }
        request = next
      case 401:
        guard let value = await authorization?(answer.head) else { return answer }
        authorization = nil
        request.setValue(value, forHTTPHeaderField: "Authorization")
      default: return answer
      }
    }
  }

  private func sendOnce(_ request: URLRequest) async throws(TransportError) -> HTTPResponse {
    guard let url = request.httpURL else {
      throw TransportError(.badRequest, "an upload needs an absolute http(s) URL")
    }
    let name = "\(request.httpMethod ?? "GET") \(url)"
    return try await transport.send(request, named: name, body: body, Exchange(), progress: progress)
  }

  private func redirected(_ request: URLRequest, by answer: HTTPResponse) -> URLRequest? {
    guard let old = request.httpURL, let location = answer.headers["Location"],
      let new = old.resolve(location), old.scheme == "http" || new.scheme == "https",
      let url = URL(string: new.strict.text)
    else { return nil }
    var next = request
    next.url = url
    if !next.isSameOrigin(as: request) {
      for field in ["Authorization", "Cookie"] { next.setValue(nil, forHTTPHeaderField: field) }
    }
    return next
  }
}

extension URLRequest {
  fileprivate func isSameOrigin(as other: URLRequest) -> Bool {
    httpURL?.origin == other.httpURL?.origin
  }

  fileprivate var httpURL: HTTPURL? {
    url.flatMap { HTTPURL($0.absoluteString) }
  }
}
