import BlobHTTP

/// How to reach a server: the URL that libcurl connects to, and whether this process does TLS on that connection.
struct Route {
  /// The URL that libcurl connects to: scheme, host and port.
  let dialled: String
  /// The proxy through which libcurl makes a tunnel to the server; nil: none.
  let proxy: Proxy?
  /// The peer of this process's own TLS; nil: the connection is used as libcurl has made it.
  let secured: Peer?
  /// The proxy that receives the requests and forwards them one by one; nil: none. RFC 9112 §3.2.2.
  let relay: Proxy?
  /// TLS to the server inside the TLS to a proxy. libcurl does both, and bytes are sent and received through libcurl.
  let isNested: Bool

  struct Peer {
    /// The name as a certificate contains it: an IPv6 address without brackets, a host name without the trailing dot.
    let name: String
    let origin: String
    /// `host:port` or the proxy, for messages.
    let label: String
  }

  /// Throws `.badRequest` if the name of the host or of the proxy has characters outside ASCII. `name`: that of the
  /// request, with which the message begins.
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
