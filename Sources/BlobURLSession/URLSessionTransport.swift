import BlobHTTP
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A transport that uses URLSession, for its configuration, proxies and certificates.
///
/// Every exchange has its own session, and so its own connection; use `SocketTransport` for many small requests.
///
/// A request with a body is made once the source's first byte is there, however long that takes; a source that can be read
/// only once is opened, and not read, before. Later, on Apple's systems, a source that gives no byte for
/// `timeoutIntervalForRequest` ends its request with `.timeout`. On Linux it does not.
///
/// On Linux a source that blocks its upload does not block others. On Apple's systems it may, after its first byte: URLSession
/// was seen to read the streams of all sessions on one thread. So send sources that may block one after another.
///
/// On Linux a `SocketTransport` sends the session's requests (`URLSessionConfiguration.carryStreamedBodies`). Of the
/// configuration, only `httpAdditionalHeaders` and `timeoutIntervalForRequest` are used; proxies come from the
/// environment. Elsewhere URLSession does everything, and `Exchange.interim` is never called.
public struct URLSessionTransport: Transport {
  private let configuration: @Sendable () -> URLSessionConfiguration

  /// `configuration` is called for each exchange. Cache, cookies and stored credentials are disabled regardless of its
  /// settings.
  public init(
    configuration: @escaping @Sendable () -> URLSessionConfiguration = { .ephemeral }
  ) {
    self.configuration = configuration
  }

  public func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    let request = try await prepared(request, on)
    if let problem = request.problem(with: body) { throw problem }
    guard let converted = URLRequest(request) else {
      throw TransportError(.badRequest, "\(request.method) \(request.url): not a URL to Foundation")
    }
    return try await send(converted, named: "\(request.method) \(request.url)", body: body, on)
  }

  /// Completes the request with `Exchange.prepare`, which may read the body.
  private func prepared(_ request: HTTPRequest, _ on: Exchange) async throws(TransportError) -> HTTPRequest {
    guard let prepare = on.prepare else { return request }
    typealias Outcome = Result<HTTPRequest, BlobError>
    let outcome = await SessionExchange.threads.runUntilCancelled { cancel in
      Outcome { () throws(BlobError) in
        var request = request
        try prepare(&request, cancel)
        return request
      }
    }
    let name = "\(request.method) \(request.url)"
    guard let outcome else { throw TransportError(.cancelled, "\(name): cancelled while the source was read") }
    do { return try outcome.get() } catch {
      throw TransportError(
        error.code == .cancelled ? .cancelled : .source, "\(name): \(error.message)", cause: error)
    }
  }

  /// `name` is for error messages.
  func send(
    _ request: URLRequest, named name: String, body: BlobSlice?, _ on: Exchange,
    progress: SessionExchange.Progress? = nil
  ) async throws(TransportError) -> HTTPResponse {
    var request = request
    request.httpShouldHandleCookies = false
    // A content coding would change the bytes of a download.
    if request.value(forHTTPHeaderField: "Accept-Encoding") == nil {
      request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    let configuration = configuration()
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.urlCredentialStorage = nil
    #if canImport(FoundationNetworking)
      configuration.protocolClasses = [ExchangeProtocol.self] + (configuration.protocolClasses ?? [])
    #endif
    return try await SessionExchange(request, named: name, body, on, progress).run(configuration).get()
  }
}
