import BlobHTTP

/// Checks the `Host` and `Origin` of requests.
///
/// A web page of another site can make a browser send requests to this machine, under the site's name (DNS rebinding)
/// or under ours. So a server on a loopback address accepts only loopback names and the configured names. A server with
/// a token accepts every name, because such a page does not know the token. A foreign `Origin` is always refused.
struct HostRule: Sendable {
  /// nil: every name is accepted.
  private let names: [String]?
  /// Additional configured names, for example with a reverse proxy. A name without a port matches every port.
  private let hosts: [String]
  private let port: UInt16
  private let origins: [String]

  init(_ listener: Listener, _ options: ServerOptions) {
    hosts = options.hosts
    let isOpen = options.token != nil || (!listener.isLoopback && hosts.isEmpty)
    let loopback = listener.isLoopback ? ["127.0.0.1", "localhost", "[::1]"] : []
    names = isOpen ? nil : [listener.host] + loopback
    port = listener.port
    origins = options.allowedOrigins
  }

  /// Throws 400 for a missing or repeated `Host`, 421 for a name that is not accepted, 403 for a foreign `Origin`. RFC
  /// 9112 §3.2, RFC 9110 §15.5.20.
  func check(_ headers: HTTPHeaders, authority: String?, isHTTP11: Bool) throws(ServerError) {
    let found = headers.fields.filter { $0.name.isSameField("Host") }.map(\.value)
    if found.count > 1 || (found.isEmpty && isHTTP11) { throw ServerError(400, "a request must name exactly one Host") }
    // The authority of an absolute-form target overrides the field. RFC 9112 §3.2.2.
    let host = authority ?? found.first
    if let host, !admits(host) {
      throw ServerError(
        421,
        "this server is not '\(host.prefix(100))'; it answers to \(names?.first ?? ""):\(port). Behind a proxy, or "
          + "under another name, start it with --host NAME, or with --token-file, which admits every name")
    }
    guard let origin = headers["Origin"] else { return }
    if origins.contains("*") || origins.contains(origin) { return }
    for scheme in ["http://", "https://"] where origin.utf8.starts(with: scheme.utf8) {
      let place = String(origin.dropFirst(scheme.count))
      // A proxy may have replaced the name in Host.
      if isGiven(place) || (place == host && admits(place)) { return }
    }
    throw ServerError(403, "pages of '\(origin.prefix(100))' may not use this server; --allow-origin lets them")
  }

  private func admits(_ host: String) -> Bool {
    guard let names else { return true }
    let (name, port) = Self.parts(host)
    if port == nil || port == "\(self.port)", names.contains(where: { $0.isSameField(name) }) { return true }
    return isGiven(host)
  }

  /// Whether the host is one of the configured names.
  private func isGiven(_ host: String) -> Bool {
    hosts.contains { $0.isSameField(host) || $0.isSameField(Self.parts(host).name) }
  }

  /// Splits into a name, or an address in brackets, and the port after the colon; nil: there is no port.
  private static func parts(_ host: String) -> (name: Substring, port: Substring?) {
    let bytes = host.utf8
    let end = bytes.last == UInt8(ascii: "]") ? nil : bytes.lastIndex(of: UInt8(ascii: ":"))
    guard let end else { return (host[...], nil) }
    return (host[..<end], Substring(bytes[bytes.index(after: end)...]))
  }
}
