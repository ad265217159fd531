import BlobHTTP

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

  /// Throws `.badRequest` where the name of the host or of the proxy has characters outside ASCII. The message begins
  /// with `name`, that of the request.
  init(to url: HTTPURL, through proxy: Proxy?, for name: String) throws(TransportError) {
    let host = url.host
    for host in [host, proxy?.host ?? ""] where !host.utf8.allSatisfy({ $0 < 0x80 }) {
      throw TransportError(
        .badRequest,
        "\(name): '\(host)' has characters outside ASCII: give the name in its ASCII form, which begins with xn--")
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

extension String {
  fileprivate var asCertified: String {
    if first == "[" { return String(dropFirst().dropLast()) }
    return last == "." ? String(dropLast()) : self
  }
}
