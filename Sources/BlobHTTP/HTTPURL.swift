import CCurl

/// An absolute `http` or `https` URL, parsed by libcurl, so that what is checked is what is connected to.
public struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
  /// The whole URL, without user, password and fragment.
  public let text: String
  /// `http` or `https`.
  public let scheme: String
  /// Lower case; an IPv6 address keeps its brackets.
  public let host: String
  /// Never 0: the scheme's default where none is given.
  public let port: Int
  /// Percent-encoded, beginning with a slash.
  public let path: String
  /// Without the question mark; nil where there is none.
  public let query: String?

  /// nil when `text` is no absolute http(s) URL, or one with a user or password in it: those belong elsewhere. Nor are
  /// zones (`[fe80::1%eth0]`) taken: they mean something on one machine only, and would end up in the journal.
  public init?(_ text: String) { self.init { $0.take(text) } }

  /// The URL that `reference`, absolute or relative, means here. RFC 3986 §5.
  public func resolve(_ reference: String) -> HTTPURL? { HTTPURL { $0.take(text) && $0.take(reference) } }

  private init?(_ prepare: (borrowing URLParser) -> Bool) {
    guard let parser = URLParser(), prepare(parser), !parser.isWithUser, parser[CURLUPART_ZONEID] == nil,
      parser.dropFragment(), let scheme = parser[CURLUPART_SCHEME], scheme == "http" || scheme == "https",
      let host = parser[CURLUPART_HOST], let port = parser.port, let path = parser[CURLUPART_PATH],
      let text = parser[CURLUPART_URL]
    else { return nil }
    self.text = text
    self.scheme = scheme
    self.host = host.lowercased()
    self.port = port
    self.path = path
    query = parser[CURLUPART_QUERY]
  }

  /// Scheme, host and port: to whom a credential may be shown. RFC 6454.
  public var origin: String { "\(scheme)://\(host):\(port)" }

  /// For messages: without the query, which may hold a secret.
  public var description: String { query == nil ? text : String(text.prefix { $0 != "?" }) }

  /// Up to and with the last slash of the path; the query is dropped.
  public var folder: HTTPURL {
    let folder = path.hasSuffix("/") ? Substring(path) : path[...path.lastIndex(of: "/")!]
    return replacing(path: String(folder))
  }

  /// What follows the last slash of the path, percent-decoded if it can be; empty for a folder.
  public var lastComponent: [UInt8] {
    PercentCoding.decoded(path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.reversed())
  }

  /// The URL of `path` within this one taken as a folder; every byte that is not unreserved is percent-encoded.
  /// RFC 3986 §2.3. The query is dropped.
  public func appending(pathBytes added: some Sequence<UInt8>) -> HTTPURL {
    replacing(path: (path.hasSuffix("/") ? path : path + "/") + Self.encode(added))
  }

  /// This place with another query, which must be percent-encoded.
  package func withQuery(_ query: String) -> HTTPURL {
    precondition(query.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
    return HTTPURL(
      text: "\(description)?\(query)", scheme: scheme, host: host, port: port, path: path, query: query)
  }

  /// Nothing needs to be parsed again: only an encoded path is put in the place of another.
  private func replacing(path: String) -> HTTPURL {
    let base = description
    return HTTPURL(
      text: base.dropLast(self.path.utf8.count) + path, scheme: scheme, host: host, port: port, path: path)
  }

  private init(text: String, scheme: String, host: String, port: Int, path: String, query: String? = nil) {
    self.text = text
    self.scheme = scheme
    self.host = host
    self.port = port
    self.path = path
    self.query = query
  }

  /// Percent-encodes what is neither unreserved nor a slash.
  public static func encode(_ path: some Sequence<UInt8>) -> String {
    var text = ""
    for byte in path {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"), UInt8(ascii: "/"):
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        text += byte < 16 ? "%0" : "%"
        text += String(byte, radix: 16, uppercase: true)
      }
    }
    return text
  }
}
