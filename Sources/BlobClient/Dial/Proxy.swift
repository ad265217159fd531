import BlobHTTP
import Blobs

/// An HTTP proxy (with CONNECT for https) or a SOCKS proxy.
public struct Proxy: Sendable, Hashable, CustomStringConvertible {
  /// `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`; for `socks4a` and `socks5h` the proxy resolves host
  /// names.
  public var scheme: String { parts.scheme }
  /// Host in lower case; an IPv6 address keeps its brackets.
  public var host: String { parts.host }
  /// The port of the URL, or the usual one of its scheme.
  public var port: Int { parts.port }
  var user: String? { parts.user }
  var password: String? { parts.password }

  /// A class instance, because it is copied for every connection.
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

  /// Parses `[scheme://][user:password@]host[:port]`. The defaults are curl's: scheme `http`, port 1080 (443 for
  /// https). nil if `text` has another form.
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

  /// Whether the proxy's URL contained a user or a password.
  public var hasCredentials: Bool { user != nil || password != nil }

  /// Whether the proxy speaks HTTP rather than SOCKS.
  var isWeb: Bool { scheme == "http" || scheme == "https" }

  /// User and password for `Proxy-Authorization: Basic`; nil without credentials. RFC 7617.
  var basicCredentials: String? {
    hasCredentials ? Base64.encode(Array("\(user ?? ""):\(password ?? "")".utf8)) : nil
  }

  /// The URL without user and password.
  public var description: String { "\(scheme)://\(host):\(port)" }
}

extension String.UTF8View {
  fileprivate var containsSchemeMark: Bool { firstRange(of: "://".utf8) != nil }
}

extension HTTPResponse {
  /// Removes the proxy's credentials from an error response that repeats them, so that they are neither shown nor
  /// stored.
  func withoutSecrets(of proxy: Proxy) -> HTTPResponse {
    if isSuccess || !proxy.hasCredentials { return self }
    return RequestSecrets(values: [proxy.password, proxy.basicCredentials].compactMap { $0 }).removed(from: self)
  }
}
