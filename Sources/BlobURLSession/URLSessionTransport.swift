import BlobHTTP
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A transport on URLSession, for where its configuration, proxies and certificates are wanted.
///
/// Every exchange has a session, and so a connection, of its own. **On Linux** a process has one queue for all its
/// sessions, and a source that makes its upload wait makes every other task of URLSession wait too: `CurlTransport` is
/// for sources that may (cameras, networks, throttled ones), and for many small requests. There also, Foundation ends
/// the process when a connection breaks in the head of an answer: leave uncertain networks to `CurlTransport`.
///
/// As URLSession is: `Exchange.interim` is never called, and on Linux blocking in `Exchange.received` does not hold the
/// server back.
public struct URLSessionTransport: Transport {
  private let configuration: @Sendable () -> URLSessionConfiguration

  /// `configuration` is asked for each exchange. Cache, cookies and stored credentials are not used, whatever it says.
  public init(
    configuration: @escaping @Sendable () -> URLSessionConfiguration = { .ephemeral }
  ) {
    self.configuration = configuration
  }

  public func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    if let problem = request.problem(with: body) { throw problem }
    guard let url = URL(string: request.url.text) else {
      throw TransportError(.badRequest, "\(request.method) \(request.url): not a URL to Foundation")
    }
    var converted = URLRequest(url: url)
    converted.httpMethod = request.method
    for (name, value) in request.headers.fields { converted.addValue(value, forHTTPHeaderField: name) }
    return try await send(converted, named: "\(request.method) \(request.url)", body: body, on)
  }

  /// `name` is for messages.
  func send(
    _ request: URLRequest, named name: String, body: BlobSlice?, _ on: Exchange,
    progress: SessionExchange.Progress? = nil
  ) async throws(TransportError) -> HTTPResponse {
    var request = request
    request.httpShouldHandleCookies = false
    // What is read back must be the bytes themselves.
    if request.value(forHTTPHeaderField: "Accept-Encoding") == nil {
      request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    let configuration = configuration()
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.urlCredentialStorage = nil
    return try await SessionExchange(request, named: name, body, on, progress).run(configuration).get()
  }
}
