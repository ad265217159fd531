import BlobHTTP

/// Which `Host` and `Origin` a request may name.
///
/// A web page elsewhere can make a browser send requests to this machine, under its own name (DNS rebinding) or ours.
/// So a server on a loopback address answers to loopback names only, and to those it was given. A server with a token
/// answers to every name, since such a page does not know the token. A foreign `Origin` is refused everywhere.
struct HostRule: Sendable {
  /// nil: every name is admitted.
  private let names: [String]?
  /// Names of this server elsewhere, as with a proxy in front. One without a port stands for every port.
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

  /// Throws 400 for a `Host` that is missing or doubled, 421 for one that is not ours, 403 for a foreign `Origin`.
  /// RFC 9112 §3.2, RFC 9110 §15.5.20.
  func check(_ headers: HTTPHeaders, authority: String?, isHTTP11: Bool) throws(ServerError) {
    let found = headers.fields.filter { $0.name.isSameField("Host") }.map(\.value)
    if found.count > 1 || (found.isEmpty && isHTTP11) { throw ServerError(400, "a request must name exactly one Host") }
    // The authority of an absolute target counts, not the field. RFC 9112 §3.2.2.
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
      // A proxy may have put another name into Host.
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

  /// Whether it is one of the names that the server was given.
  private func isGiven(_ host: String) -> Bool {
    hosts.contains { $0.isSameField(host) || $0.isSameField(Self.parts(host).name) }
  }

  /// A name, or an address in brackets, and the port behind the colon; nil: none is told.
  private static func parts(_ host: String) -> (name: Substring, port: Substring?) {
    let bytes = host.utf8
    let end = bytes.last == UInt8(ascii: "]") ? nil : bytes.lastIndex(of: UInt8(ascii: ":"))
    guard let end else { return (host[...], nil) }
    return (host[..<end], Substring(bytes[bytes.index(after: end)...]))
  }
}
