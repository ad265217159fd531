import BlobHTTP

/// Where requests go instead of to their server: an HTTP proxy (by CONNECT for https), or a SOCKS one.
public struct Proxy: Sendable, Hashable, CustomStringConvertible {
  /// `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`; with an `a` or `h` the proxy looks names up.
  public let scheme: String
  /// An IPv6 address keeps its brackets.
  public let host: String
  public let port: Int
  let user: String?
  let password: String?

  /// Reads `[scheme://][user:password@]host[:port]`; without a scheme it is `http`, without a port 1080, as curl has
  /// it. nil when `text` is none of this.
  public init?(_ text: String) {
    guard let reference = URLReference(text.utf8.containsSchemeMark ? text : "http://" + text),
      let scheme = reference.scheme?.lowercased(), Self.schemes.contains(scheme),
      let authority = reference.authority.flatMap({ URLAuthority($0) })
    else { return nil }
    self.scheme = scheme
    host = authority.host.lowercased()
    port = authority.port ?? (scheme == "https" ? 443 : 1080)
    user = authority.user
    password = authority.password
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
