import CCurl

/// libcurl's parser of URLs: what is checked with it is what will be connected to.
struct URLParser: ~Copyable {
  private let handle: OpaquePointer
  private let flags: UInt32

  /// `anyScheme`: also what libcurl does not transfer by, as `socks5`.
  init?(anyScheme: Bool = false) {
    guard let handle = curl_url() else { return nil }
    self.handle = handle
    flags = anyScheme ? UInt32(CURLU_NON_SUPPORT_SCHEME) : 0
  }

  deinit { curl_url_cleanup(handle) }

  /// Takes a URL, or one relative to what was taken before. false: it is none.
  func take(_ text: String) -> Bool {
    !text.utf8.contains(0) && curl_url_set(handle, CURLUPART_URL, text, flags) == CURLUE_OK
  }

  func dropFragment() -> Bool { curl_url_set(handle, CURLUPART_FRAGMENT, nil, 0) == CURLUE_OK }

  /// As it stands in the URL; nil where it is missing.
  subscript(part: CURLUPart) -> String? { text(of: part, 0) }

  var isWithUser: Bool { self[CURLUPART_USER] != nil || self[CURLUPART_PASSWORD] != nil }
  /// The scheme's own where none is given; nil where neither is known.
  var port: Int? { text(of: CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap { Int($0) } }

  func decoded(_ part: CURLUPart) -> String? { text(of: part, UInt32(CURLU_URLDECODE)) }

  private func text(of part: CURLUPart, _ flags: UInt32) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(handle, part, &text, flags) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }
}
