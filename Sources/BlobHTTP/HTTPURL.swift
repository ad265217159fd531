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
  /// Scheme, host and port: to whom a credential may be shown. RFC 6454.
  public let origin: String

  /// nil when `text` is no absolute http(s) URL, or one with a user or password in it: those belong elsewhere. Nor are
  /// zones (`[fe80::1%eth0]`) taken: they mean something on one machine only, and would end up in the journal.
  public init?(_ text: String) { self.init { $0.take(text) } }

  /// The URL that `reference`, absolute or relative, means here. RFC 3986 §5.
  public func resolve(_ reference: String) -> HTTPURL? {
    if let path = plainPath(of: reference) { return replacing(path: path) }
    return HTTPURL { $0.take(text) && $0.take(reference) }
  }

  /// Where nothing needs to be parsed: an absolute path, here or at this very place, in which every byte stands for
  /// itself. So are most that servers give. nil where that is not plain.
  private func plainPath(of reference: String) -> String? {
    let place = description.utf8.dropLast(path.utf8.count)
    let bytes = reference.utf8.starts(with: place) ? reference.utf8.dropFirst(place.count) : reference.utf8[...]
    var last: UInt8 = 0
    for byte in bytes {
      guard byte.isUnreserved || byte == UInt8(ascii: "/") else { return nil }
      // Dots may be steps, and a second slash the beginning of a host.
      if last == UInt8(ascii: "/"), byte == last || byte == UInt8(ascii: ".") { return nil }
      if last == 0, byte != UInt8(ascii: "/") { return nil }
      last = byte
    }
    return last == 0 ? nil : String(Substring(bytes))
  }

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
    origin = "\(scheme)://\(self.host):\(port)"
  }

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
    return HTTPURL(self, text: "\(description)?\(query)", path: path, query: query)
  }

  /// Nothing needs to be parsed again: only an encoded path is put in the place of another.
  private func replacing(path: String) -> HTTPURL {
    let base = description
    return HTTPURL(self, text: base.dropLast(self.path.utf8.count) + path, path: path, query: nil)
  }

  /// Another place at the origin of `url`.
  private init(_ url: HTTPURL, text: String, path: String, query: String?) {
    self.text = text
    scheme = url.scheme
    host = url.host
    port = url.port
    origin = url.origin
    self.path = path
    self.query = query
  }

  /// Percent-encodes what is neither unreserved nor a slash.
  public static func encode(_ path: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(path.underestimatedCount)
    for byte in path {
      if byte.isUnreserved || byte == UInt8(ascii: "/") {
        text.append(byte)
      } else {
        text.append(UInt8(ascii: "%"))
        for digit in [byte >> 4, byte & 15] { text.append(digit < 10 ? digit + 48 : digit + 55) }
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}

extension UInt8 {
  /// RFC 3986 §2.3.
  fileprivate var isUnreserved: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
