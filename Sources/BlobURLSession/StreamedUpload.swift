import BlobHTTP
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An upload through URLSession whose body is a blob: announced with its exact length, and sent again where the server
/// wants it elsewhere (307, 308) or with credentials (401).
///
/// URLSession on Linux would wait for ever, or report the success of an empty body, were that left to it.
public struct StreamedUpload: Sendable {
  public var body: BlobSlice
  public var transport: URLSessionTransport
  /// 307 and 308 followed, at the most; the next one is the answer. Never from `https` to `http`; and to another host
  /// or port without `Authorization` and `Cookie`.
  public var redirects = 5
  /// The value of `Authorization` to send again with, once, after a 401 with this head; nil: the 401 is the answer, as
  /// it is from another host or port than the request was for.
  public var authorization: (@Sendable (HTTPHead) async -> String?)?
  /// Bytes of the body handed to the connection, and how many there are; nil where only the end will tell. Begins again
  /// with each sending. Called on URLSession's thread.
  public var progress: (@Sendable (_ sent: Int64, _ length: Int64?) -> Void)?

  public init(_ body: BlobSlice, over transport: URLSessionTransport = URLSessionTransport()) {
    self.body = body
    self.transport = transport
  }

  public init(_ source: any BlobSource, over transport: URLSessionTransport = URLSessionTransport()) {
    self.init(BlobSlice(source), over: transport)
  }

  /// Sends `request`, whose own body is not looked at, and returns the final answer, whatever its status.
  ///
  /// What goes wrong with the source is `.source`, with its own error as `cause`; of a sequential source, also that it
  /// cannot be sent again. Cancelling the task ends it at once. After a throw nothing is known of what the server did.
  public func send(_ request: URLRequest) async throws(TransportError) -> HTTPResponse {
    var request = request
    var (redirects, authorization) = (redirects, authorization)
    while true {
      let answer = try await sendOnce(request)
      switch answer.status {
      case 307, 308:
        guard redirects > 0, let next = redirected(request, by: answer) else { return answer }
        redirects -= 1
        // Who is asked there would be told what is for here.
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
      let new = old.resolve(location), old.scheme == "http" || new.scheme == "https", let url = URL(string: new.text)
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
