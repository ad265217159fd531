import BlobClient
import BlobHTTP
import BlobUpload

extension ConnectionOptions {
  /// Returns the error, or one that says that the server uses TLS although the URL does not, or vice versa.
  func explained(_ error: UploadError, at endpoint: HTTPURL) async -> UploadError {
    let codes: [TransportError.Code] = [.broken, .badResponse, .tls, .untrusted]
    let isOdd = error.status == 400 || (error.cause as? TransportError).map { codes.contains($0.code) } ?? false
    let scheme = endpoint.scheme == "http" ? "https" : "http"
    guard isOdd, !Task.isCancelled, let other = HTTPURL("\(scheme)://\(endpoint.host):\(endpoint.port)/"),
      await isAnswered(other)
    else { return error }
    return UploadError(
      .giveUp, .destination,
      "\(endpoint.host):\(endpoint.port) speaks \(scheme), not \(endpoint.scheme): begin the destination with "
        + "\(scheme)://")
  }

  /// Whether an HTTP server responds. No secret is sent, so the server is not verified.
  private func isAnswered(_ url: HTTPURL) async -> Bool {
    guard var options = try? transportOptions(connections: 1) else { return false }
    options.verifiesTLS = false
    (options.connect, options.noProgress) = (.seconds(3), .seconds(3))
    let answer = try? await SocketTransport(options).send(HTTPRequest("OPTIONS", url), body: nil, Exchange())
    // Some servers tell a client in plain text that it should have used TLS.
    return answer.map { $0.status != 400 } ?? false
  }
}
