/// An absolute `http` or `https` URL. RFC 3986.
public struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
  /// The whole URL, without user, password and fragment.
  public var text: String { parts.text }
  /// `http` or `https`.
  public var scheme: String { parts.server.scheme }
  /// The host in lower case; an IPv6 address keeps its brackets.
  public var host: String { parts.server.host }
  /// The port, or the scheme's default if the URL has none. Never 0.
  public var port: Int { parts.server.port }
  /// Percent-encoded, beginning with a slash.
  public var path: String { parts.path }
  /// The query without the question mark; nil if there is none.
  public var query: String? { parts.query }
  /// Scheme, host and port. Credentials are valid for one origin. RFC 6454.
  public var origin: String { parts.server.origin }

  /// Whether this is known to equal its `normalized` form.
  package var isNormal: Bool { parts.isNormal }

  /// Class instances, because URLs are copied often, and URLs of one server share most components.
  private let parts: Parts

  private final class Parts: Sendable {
    let text: String
    let path: String
    let query: String?
    let server: Server
    let isNormal: Bool

    init(_ text: String, path: String, query: String?, _ server: Server, isNormal: Bool) {
      self.text = text
      self.path = path
      self.query = query
      self.server = server
      self.isNormal = isNormal
    }
  }

  private final class Server: Sendable {
    let scheme: String
    let host: String
    let port: Int
    let origin: String
    /// Scheme, host and port of a normalized URL.
    let normalText: String

    init(_ scheme: String, _ host: String, _ port: Int, isStandard: Bool) {
      self.scheme = scheme
      self.host = host
      self.port = port
      origin = "\(scheme)://\(host):\(port)"
      normalText = isStandard ? "\(scheme)://\(host)" : origin
    }
  }

  public static func == (a: HTTPURL, b: HTTPURL) -> Bool { a.parts === b.parts || a.text == b.text }
  public func hash(into hasher: inout Hasher) { hasher.combine(text) }

  /// Whether both URLs have the same origin.
  package func isAtServer(of other: HTTPURL) -> Bool { parts.server === other.parts.server || origin == other.origin }

  /// nil if `text` is not an absolute http(s) URL, or if it contains a user or password, which must be passed
  /// separately. IPv6 zones (`[fe80::1%eth0]`) are also refused: they are valid on one machine only, and URLs are
  /// stored in the journal.
  public init?(_ text: String) {
    guard let reference = URLReference(text), let scheme = reference.scheme?.lowercased(),
      let standard = Self.standardPorts[scheme], let text = reference.authority,
      let authority = URLAuthority(text), authority.user == nil
    else { return nil }
    let number = authority.port ?? standard
    let server = Server(scheme, authority.host.lowercased(), number, isStandard: number == standard)
    let port = authority.port.map { ":\($0)" } ?? ""
    self.init("\(scheme)://\(authority.host)\(port)", path: reference.path, reference.query, server)
  }

  private static let standardPorts = ["http": 80, "https": 443]

  /// Resolves an absolute or relative reference against this URL. RFC 3986 §5.
  public func resolve(_ reference: String) -> HTTPURL? {
    if let path = plainPath(of: reference) { return replacing(path: path) }
    guard let parts = URLReference(reference) else { return nil }
    if parts.scheme != nil { return HTTPURL(reference) }
    if parts.authority != nil { return HTTPURL("\(scheme):\(reference)") }
    let end = text.utf8.count - (query.map { $0.utf8.count + 1 } ?? 0) - path.utf8.count
    let start = Substring(text.utf8.prefix(end))
    if parts.path.isEmpty { return HTTPURL(start, path: path[...], parts.query ?? query?[...], self.parts.server) }
    let folder = parts.path.first == "/" ? "" : path[...path.lastIndex(of: "/")!]
    return HTTPURL(start, path: folder + parts.path, parts.query, self.parts.server)
  }

  /// Fast path for `resolve`: returns the path of `reference` if it is an absolute path, alone or at this origin, that
  /// needs no decoding or normalization. Most references from servers are of this kind. nil for all others.
  private func plainPath(of reference: String) -> String? {
    let place = description.utf8.dropLast(path.utf8.count)
    let bytes = reference.utf8.starts(with: place) ? reference.utf8.dropFirst(place.count) : reference.utf8[...]
    // `last` is 0 before the first byte. `isDot`: the segment is a dot so far, and may become a dot segment.
    var (last, isDot) = (UInt8(0), false)
    for byte in bytes {
      let isSlash = byte == UInt8(ascii: "/")
      guard byte.isUnreserved || isSlash, last != 0 || isSlash else { return nil }
      if isDot, isSlash || byte == UInt8(ascii: ".") { return nil }
      // A second slash may begin an authority.
      if isSlash, last == byte { return nil }
      isDot = last == UInt8(ascii: "/") && byte == UInt8(ascii: ".")
      last = byte
    }
    return last == 0 || isDot ? nil : String(Substring(bytes))
  }

  /// `place` is scheme, host and port as written. Removes dot segments and an empty query.
  private init(_ place: some StringProtocol, path: Substring, _ query: Substring?, _ server: Server) {
    let path = path.isEmpty ? "/" : URLReference.removingDotSegments(path)
    let query = query.flatMap { $0.isEmpty ? nil : String($0) }
    parts = Parts(
      "\(place)\(path)\(query.map { "?" + $0 } ?? "")", path: path, query: query, server,
      isNormal: place == server.normalText && PercentCoding.isNormal(path.utf8))
  }

  /// The URL with scheme, host, port and path in normal form: URLs that differ in these only by how they are written have the
  /// same one. It is for comparing, and requests are sent to URLs as they were given: a server may compare a signature with
  /// the path as written. The query stays as it is, since it may be a signature. RFC 3986 §6.2.2, §6.2.3.
  ///
  /// Scheme and host are in lower case, the scheme's own port is left out, and of the percent-encoded bytes those that are
  /// unreserved stand for themselves, and the others have capital digits.
  public var normalized: HTTPURL {
    if isNormal { return self }
    let path = PercentCoding.normalized(path.utf8)
    let text = "\(parts.server.normalText)\(path)\(query.map { "?" + $0 } ?? "")"
    return HTTPURL(Parts(text, path: path, query: query, parts.server, isNormal: true))
  }

  private init(_ parts: Parts) { self.parts = parts }

  /// The URL without its query, which may contain a secret, for messages.
  public var description: String { query == nil ? text : String(text.prefix { $0 != "?" }) }

  /// The URL up to and including the last slash of the path, without the query.
  public var folder: HTTPURL {
    if query == nil, path.utf8.last == UInt8(ascii: "/") { return self }
    let folder = path.hasSuffix("/") ? Substring(path) : path[...path.lastIndex(of: "/")!]
    return replacing(path: String(folder))
  }

  /// The part of the path after the last slash, percent-decoded if possible; empty for a folder.
  public var lastComponent: [UInt8] {
    PercentCoding.decoded(path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.reversed())
  }

  /// Appends `added` to this URL taken as a folder, and drops the query. Every byte that is neither unreserved nor a
  /// slash is percent-encoded. RFC 3986 §2.3.
  public func appending(pathBytes added: some Sequence<UInt8>) -> HTTPURL {
    let slash = path.utf8.last == UInt8(ascii: "/") ? "" : "/"
    let encoded = slash + Self.encode(added)
    if query != nil { return replacing(path: path + encoded) }
    return HTTPURL(self, text: text + encoded, path: path + encoded, query: nil)
  }

  /// This URL with another query, which must be percent-encoded. Traps on a blank, a `#` or anything that is not
  /// visible ASCII.
  public func withQuery(_ query: String) -> HTTPURL {
    precondition(query.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
    return HTTPURL(self, text: "\(description)?\(query)", path: path, query: query)
  }

  /// Replaces the path, which must be encoded already, without parsing the URL again.
  private func replacing(path: String) -> HTTPURL {
    let end = text.utf8.count - (query.map { $0.utf8.count + 1 } ?? 0) - self.path.utf8.count
    var replaced = ""
    replaced.reserveCapacity(end + path.utf8.count)
    replaced += Substring(text.utf8.prefix(end))
    replaced += path
    return HTTPURL(self, text: replaced, path: path, query: nil)
  }

  /// Another URL at the origin of `url`. The caller has added or removed only path segments in normal form.
  private init(_ url: HTTPURL, text: String, path: String, query: String?) {
    parts = Parts(text, path: path, query: query, url.parts.server, isNormal: url.isNormal)
  }

  /// Percent-encodes every byte that is neither unreserved nor a slash.
  public static func encode(_ path: some Sequence<UInt8>) -> String {
    path.withContiguousStorageIfAvailable { encode(bytes: $0) }
      ?? Array(path).withUnsafeBufferPointer { encode(bytes: $0) }
  }

  private static func encode(bytes: UnsafeBufferPointer<UInt8>) -> String {
    var escaped = 0
    for byte in bytes where !byte.standsForItself { escaped += 1 }
    return String(unsafeUninitializedCapacity: bytes.count + 2 * escaped) { text in
      var end = 0
      func put(_ byte: UInt8) {
        text[end] = byte
        end += 1
      }
      for byte in bytes {
        if byte.standsForItself {
          put(byte)
        } else {
          put(UInt8(ascii: "%"))
          put(byte >> 4 < 10 ? byte >> 4 + 48 : byte >> 4 + 55)
          put(byte & 15 < 10 ? byte & 15 + 48 : byte & 15 + 55)
        }
      }
      return end
    }
  }
}

extension UInt8 {
  fileprivate var standsForItself: Bool { isUnreserved || self == UInt8(ascii: "/") }

  /// An unreserved character. RFC 3986 §2.3.
  var isUnreserved: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
