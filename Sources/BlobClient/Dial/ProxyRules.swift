import BlobHTTP
import Platform

/// Selects the proxy for each request: the caller's, or else the environment's, by curl's rules.
struct ProxyRules: Sendable {
  private let given: Proxy?
  private let environment: [String: String]
  private let exempt: Exemptions
  /// Whether no request uses a proxy.
  private let areNone: Bool

  /// If `environment` is nil, the environment of this process applies.
  init(_ given: Proxy?, environment: [String: String]?) {
    self.given = given
    let environment = environment ?? Self.processEnvironment
    self.environment = environment
    areNone = given == nil && environment.keys.allSatisfy { $0.lowercased() == "no_proxy" }
    exempt = Exemptions(environment["no_proxy"] ?? environment["NO_PROXY"] ?? "")
  }

  private static var processEnvironment: [String: String] {
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"]
    return names.reduce(into: [:]) { found, name in found[name] = getenv(name).map { String(cString: $0) } }
  }

  /// nil: the request goes directly to its server, as requests to loopback addresses always do.
  func proxy(for url: HTTPURL) throws(TransportError) -> Proxy? {
    if areNone || url.isLoopback || exempt.holds(url.host) { return nil }
    if let given { return given }
    // `HTTP_PROXY` is ignored: for a CGI program it holds the `Proxy` field of the client's request.
    let own = url.scheme == "http" ? ["http_proxy"] : ["https_proxy", "HTTPS_PROXY"]
    for name in own + ["all_proxy", "ALL_PROXY"] {
      guard let text = environment[name], !text.isEmpty else { continue }
      if let proxy = Proxy(text) { return proxy }
      throw TransportError(
        .badRequest, "\(url.origin): $\(name) is no URL of a proxy; wanted is http://host:port or socks5h://host:port")
    }
    return nil
  }
}

/// A `no_proxy` list of domain names (with their subdomains), addresses, networks in CIDR notation, or `*` alone for
/// every host.
struct Exemptions: Sendable {
  private let isEverything: Bool
  private let entries: [Substring]

  init(_ list: String) {
    isEverything = list == "*"
    entries = list.split { $0 == "," || $0 == " " }
  }

  func holds(_ host: String) -> Bool {
    if isEverything { return true }
    if let address = IPAddress(host) { return entries.contains { address.isWithin($0) } }
    let name = host.trimmingDots
    return entries.contains { entry in
      let suffix = entry.lowercased().trimmingDots
      return !suffix.isEmpty && (name == suffix || name.hasSuffix("." + suffix))
    }
  }
}

extension StringProtocol {
  /// `.example.org.` means the same as `example.org`.
  fileprivate var trimmingDots: String {
    var text = Substring(self)
    while text.first == "." { text.removeFirst() }
    if text.last == "." { text.removeLast() }
    return String(text)
  }
}
