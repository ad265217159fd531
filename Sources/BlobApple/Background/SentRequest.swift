import BlobHTTP

/// A request as the app has made it, or as the system has sent it in the end. Background sessions follow redirects without
/// asking, and a POST or PATCH then becomes a GET of another page.
struct SentRequest: CustomStringConvertible {
  private let method: String?
  private let url: HTTPURL?

  /// nil: Foundation does not tell it.
  init(_ method: String?, _ url: String?) {
    self.method = method
    self.url = url.flatMap { HTTPURL($0) }
  }

  var description: String { "\(method ?? "request") \(url.map { "\($0)" } ?? "")" }

  /// Why the response to `other` is none to this request; nil: it is one.
  ///
  /// `mayResume`: the system may have resumed the request by itself. The response then comes from the URL of the upload,
  /// and has the field of the protocol.
  func problem(answeredAs other: SentRequest, _ head: HTTPHead, mayResume: Bool) -> TransportError? {
    let isMoved =
      if let url, let there = other.url { url.normalized.text != there.normalized.text } else {
        false
      }
    let isAnother = if let method, let sent = other.method { method != sent } else { false }
    if !isMoved, !isAnother { return nil }
    let isOfProtocol =
      head.headers["Upload-Complete"] != nil || head.headers["Upload-Incomplete"] != nil
    if mayResume, isOfProtocol, url?.origin == other.url?.origin { return nil }
    return TransportError(.badResponse, "\(self): it was redirected to \(other)")
  }
}
