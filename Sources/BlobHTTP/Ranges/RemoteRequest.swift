import Blobs

/// Sends GET for one URL and follows redirects.
struct RemoteRequest: Sendable {
  let url: HTTPURL
  private let transport: any Transport
  private let headers: HTTPHeaders
  private static let mostRedirects = 5

  init(_ url: HTTPURL, _ transport: any Transport, _ headers: HTTPHeaders) {
    self.url = url
    self.transport = transport
    self.headers = headers
  }

  /// The final response, without the fields in which it repeats a secret. `on.began` and `on.received` are called for a
  /// successful response only.
  func get(_ fields: HTTPHeaders, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    var (place, on) = (url, on)
    let secrets = RequestSecrets(headers, query: url.query)
    if let began = on.began { on.began = { head throws(BlobError) in try began(secrets.removed(from: head)) } }
    do throws(TransportError) { return secrets.removed(from: try await follow(&place, fields, on)) } catch {
      // The message contains a URL from the server's redirect.
      if place == url || !secrets.isOne(in: error.message.utf8) { throw error }
      throw TransportError(
        error.code,
        "GET \(url): redirected to a place that is not shown, since its URL repeats a credential: \(error.code)",
        cause: error.cause)
    }
  }

  /// `place` is the URL of the last request, or the redirect target that was refused.
  private func follow(
    _ place: inout HTTPURL, _ fields: HTTPHeaders, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    for _ in 0...Self.mostRedirects {
      // A content coding applied in transfer would change the bytes and their ranges.
      var request = HTTPRequest("GET", place, ["Accept-Encoding": "identity"])
      for field in fields.fields { request.headers.add(field.name, field.value) }
      if place.origin == url.origin {
        for field in headers.fields { request.headers.add(field.name, field.value) }
      }
      let response = try await transport.send(request, body: nil, on)
      guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
      guard let next = response.headers["Location"].flatMap({ place.resolve($0) }) else {
        throw TransportError(.badResponse, "GET \(place): answered \(response.status) without a usable Location")
      }
      let before = place
      place = next
      if before.scheme == "https", next.scheme != "https" {
        throw TransportError(
          .badResponse,
          "GET \(before): answered \(response.status) to \(next): not followed, since that is not encrypted")
      }
    }
    throw TransportError(.badResponse, "GET \(url): more than \(Self.mostRedirects) redirects in a row")
  }

  /// Translates an unsuccessful response into the error of a source.
  func refusal(_ response: HTTPResponse) -> BlobError {
    let code: BlobError.Code =
      switch response.status {
      case 404, 410: .notFound
      case 401, 403: .permission
      case 412: .changed
      case 416: .outOfRange
      case 408, 425, 429, 500, 502, 503, 504: .invalidated
      default: .io
      }
    return BlobError(code, "GET \(url): the server answered \(response.status)", cause: RefusedRead(response: response))
  }

  /// Translates a missing response into the error of a source: `.invalidated` if a retry may help.
  func failure(_ error: TransportError) -> BlobError {
    switch error.code {
    case .cancelled: BlobError(.cancelled, error.message, cause: error)
    case .resolve, .connect, .broken, .timeout: BlobError(.invalidated, error.message, cause: error)
    case .source: error.cause ?? BlobError(.io, error.message, cause: error)
    default: BlobError(.io, error.message, cause: error)
    }
  }
}
