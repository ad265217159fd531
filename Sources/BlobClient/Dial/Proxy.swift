import BlobHTTP

/// Where requests go instead of to their server: an HTTP proxy (by CONNECT for https), or a SOCKS one.
public struct Proxy: Sendable, Hashable, CustomStringConvertible {
  /// `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`; with an `a` or `h` the proxy looks names up.
  public var scheme: String { parts.scheme }
  /// An IPv6 address keeps its brackets.
  public var host: String { parts.host }
  public var port: Int { parts.port }
  var user: String? { parts.user }
  var password: String? { parts.password }

  /// An object, since it is copied with every connection.
  private let parts: Parts

  private final class Parts: Sendable {
    let scheme, host: String
    let port: Int
    let user, password: String?

    init(_ scheme: String, _ authority: URLAuthority) {
      self.scheme = scheme
      host = authority.host.lowercased()
      port = authority.port ?? (scheme == "https" ? 443 : 1080)
      (user, password) = (authority.user, authority.password)
    }
  }

  /// Reads `[scheme://][user:password@]host[:port]`; without a scheme it is `http`, without a port 1080, as curl has
  /// it. nil when `text` is none of this.
  public init?(_ text: String) {
    guard let reference = URLReference(text.utf8.containsSchemeMark ? text : "http://" + text),
      let scheme = reference.scheme?.lowercased(), Self.schemes.contains(scheme),
      let authority = reference.authority.flatMap({ URLAuthority($0) })
    else { return nil }
    parts = Parts(scheme, authority)
  }

  public static func == (a: Proxy, b: Proxy) -> Bool {
    a.parts === b.parts
      || (a.scheme, a.host, a.port) == (b.scheme, b.host, b.port) && (a.user, a.password) == (b.user, b.password)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(scheme)
    hasher.combine(host)
    hasher.combine(port)
  }

  private static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

  /// A user or password came with it.
  public var hasCredentials: Bool { user != nil || password != nil }

  /// It speaks HTTP, not SOCKS.
  var isWeb: Bool { scheme == "http" || scheme == "https" }

  /// User and password for `Proxy-Authorization: Basic`; nil where it has none. RFC 7617.
  var basicCredentials: String? {
    hasCredentials ? Base64.encode(Array("\(user ?? ""):\(password ?? "")".utf8)) : nil
  }

  /// Without user and password.
  public var description: String { "\(scheme)://\(host):\(port)" }
}

extension String.UTF8View {
  fileprivate var containsSchemeMark: Bool { firstRange(of: "://".utf8) != nil }
}

extension HTTPResponse {
  /// A proxy that repeats its credentials in a refusal must not have them shown or kept: then its words are left out.
  func withoutSecrets(of proxy: Proxy) -> HTTPResponse {
    if isSuccess || !proxy.hasCredentials { return self }
    return SecretWords(values: [proxy.password, proxy.basicCredentials].compactMap { $0 }).removed(from: self)
  }
}
