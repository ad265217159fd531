import BlobHTTP

/// Which `Host` and `Origin` a request may name.
///
/// A web page elsewhere can make a browser send requests to this machine, under its own name (DNS rebinding) or ours.
/// So a server on a loopback address answers to loopback names only, and a foreign `Origin` is refused everywhere.
struct HostRule: Sendable {
  private let names: [String]?
  private let port: UInt16
  private let origins: [String]

  init(_ listener: Listener, origins: [String]) {
    names = listener.isLoopback ? [listener.host, "127.0.0.1", "localhost", "[::1]"] : nil
    port = listener.port
    self.origins = origins
  }

  /// Throws 400 for a `Host` that is missing or doubled, 421 for one that is not ours, 403 for a foreign `Origin`.
  /// RFC 9112 §3.2, RFC 9110 §15.5.20.
  func check(_ headers: HTTPHeaders, authority: String?, isHTTP11: Bool) throws(ServerError) {
    let hosts = headers.fields.filter { $0.name.isSameField("Host") }.map(\.value)
    if hosts.count > 1 || (hosts.isEmpty && isHTTP11) { throw ServerError(400, "a request must name exactly one Host") }
    // The authority of an absolute target counts, not the field. RFC 9112 §3.2.2.
    let host = authority ?? hosts.first
    if let host, !admits(host) {
      throw ServerError(421, "this server is not '\(host.prefix(100))'; it answers to \(names?.first ?? ""):\(port)")
    }
    guard let origin = headers["Origin"] else { return }
    if origins.contains("*") || origins.contains(origin) { return }
    if let host, origin == "http://\(host)" || origin == "https://\(host)", admits(host) { return }
    throw ServerError(403, "pages of '\(origin.prefix(100))' may not use this server; --allow-origin lets them")
  }

  private func admits(_ host: String) -> Bool {
    guard let names else { return true }
    return names.contains { name in
      guard host.utf8.count >= name.utf8.count, host.prefix(name.count).isSameField(name) else { return false }
      let rest = host.dropFirst(name.count)
      return rest.isEmpty || rest == ":\(port)"
    }
  }
}
