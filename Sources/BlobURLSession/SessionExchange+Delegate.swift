import BlobHTTP
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension SessionExchange: URLSessionDataDelegate {
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData sent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    self.sent(sent)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(newStream())
  }

  /// Does not follow redirects; the redirect response is the result.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    answered(HTTPHead(response))
    completionHandler(nil)
  }

  /// Credentials are sent in a header field, so HTTP challenges are rejected. The system evaluates server certificates.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    // A certificate challenge comes before any response, so it has no `failureResponse`.
    guard let response = challenge.failureResponse as? HTTPURLResponse else {
      return completionHandler(.performDefaultHandling, nil)
    }
    answered(HTTPHead(response))
    completionHandler(.rejectProtectionSpace, nil)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse { answered(HTTPHead(response)) }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { take(data) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    completed(error)
  }
}

extension HTTPHead {
  /// Repeated fields are already joined by commas.
  package init(_ response: HTTPURLResponse) {
    var headers = HTTPHeaders()
    for (name, value) in response.allHeaderFields { headers.add("\(name)", "\(value)") }
    self.init(status: response.statusCode, headers: headers)
  }
}
