import BlobHTTP
import CCurl

/// The way to a server: what libcurl dials, and what is ours to do on the connection it has made.
struct Route {
  /// Scheme, host and port.
  let dialled: String
  /// The proxy that libcurl goes through, with a tunnel to the server; nil: none.
  let proxy: Proxy?
  /// Whom our TLS must reach; nil: the connection stays as libcurl has made it.
  let secured: Peer?
  /// Requests go to a proxy, which sends them on, one by one. RFC 9112 §3.2.2.
  let relay: Proxy?
  /// TLS within the TLS of a proxy. Both are libcurl's, and so is the stream.
  let isNested: Bool

  struct Peer {
    /// As it stands in a certificate: an IPv6 address without brackets, a name without the dot of the root.
    let name: String
    let origin: String
    /// For messages.
    let label: String
  }

  /// Throws `.badRequest` where the host's name cannot be written in ASCII.
  init(to url: HTTPURL, through proxy: Proxy?) throws(TransportError) {
    guard let host = url.asciiHost else {
      throw TransportError(.badRequest, "\(url): the name '\(url.host)' cannot be written in ASCII (RFC 5891)")
    }
    let isSecure = url.scheme == "https"
    relay = proxy?.isWeb == true && !isSecure ? proxy : nil
    isNested = isSecure && proxy?.scheme == "https"
    self.proxy = relay == nil ? proxy : nil
    if let relay {
      dialled = "http://\(relay.host):\(relay.port)/"
      secured =
        relay.scheme == "https"
        ? Peer(name: relay.host.asCertified, origin: relay.description, label: "the proxy \(relay)") : nil
    } else {
      dialled = "\(isNested ? "https" : "http")://\(host):\(url.port)/"
      secured =
        isSecure && !isNested ? Peer(name: host.asCertified, origin: url.origin, label: "\(url.host):\(url.port)") : nil
    }
  }
}

extension HTTPURL {
  /// The host as requests and certificates have it. nil: its name has characters outside ASCII, and libcurl cannot convert
  /// them.
  var asciiHost: String? {
    if host.utf8.allSatisfy({ $0 < 0x80 }) { return host }
    guard let handle = curl_url() else { return nil }
    defer { curl_url_cleanup(handle) }
    var name: UnsafeMutablePointer<CChar>?
    guard curl_url_set(handle, CURLUPART_URL, "http://\(host)/", 0) == CURLUE_OK,
      curl_url_get(handle, CURLUPART_HOST, &name, 1 << 12) == CURLUE_OK, let name  // CURLU_PUNYCODE, libcurl 7.88
    else { return nil }
    defer { curl_free(name) }
    let ascii = String(cString: name)
    return ascii.utf8.allSatisfy { $0 < 0x80 } ? ascii : nil
  }
}

extension String {
  fileprivate var asCertified: String {
    if first == "[" { return String(dropFirst().dropLast()) }
    return last == "." ? String(dropLast()) : self
  }
}
