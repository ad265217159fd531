import BlobHTTP
import Platform

/// Which requests go through which proxy: what the caller says, else the environment, as curl reads it.
struct ProxyRules: Sendable {
  private let given: Proxy?
  private let environment: [String: String]
  private let exempt: Exemptions
  /// No request goes through any.
  private let areNone: Bool

  /// `environment`: nil for that of this process.
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

  /// nil: the request goes straight to its server, as it always does on this machine.
  func proxy(for url: HTTPURL) throws(TransportError) -> Proxy? {
    if areNone || url.isLoopback || exempt.holds(url.host) { return nil }
    if let given { return given }
    // HTTP_PROXY in capitals is what a CGI gets from the header `Proxy` of its client.
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

/// A `no_proxy` list: names with all below them, addresses, networks in CIDR notation, or `*` alone for everything.
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
  /// `.example.org.` means what `example.org` does.
  fileprivate var trimmingDots: String {
    var text = Substring(self)
    while text.first == "." { text.removeFirst() }
    if text.last == "." { text.removeLast() }
    return String(text)
  }
}
