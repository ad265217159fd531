/// An absolute `http` or `https` URL. RFC 3986.
public struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
  /// The whole URL, without user, password and fragment.
  public var text: String { parts.text }
  /// `http` or `https`.
  public var scheme: String { parts.server.scheme }
  /// Lower case; an IPv6 address keeps its brackets.
  public var host: String { parts.server.host }
  /// Never 0: the scheme's default where none is given.
  public var port: Int { parts.server.port }
  /// Percent-encoded, beginning with a slash.
  public var path: String { parts.path }
  /// Without the question mark; nil where there is none.
  public var query: String? { parts.query }
  /// Scheme, host and port: to whom a credential may be shown. RFC 6454.
  public var origin: String { parts.server.origin }

  /// Objects, since URLs are copied with everything that goes to them, and those of one server have most in common.
  private let parts: Parts

  private final class Parts: Sendable {
    let text: String
    let path: String
    let query: String?
    let server: Server

    init(_ text: String, path: String, query: String?, _ server: Server) {
      self.text = text
      self.path = path
      self.query = query
      self.server = server
    }
  }

  private final class Server: Sendable {
    let scheme: String
    let host: String
    let port: Int
    let origin: String

    init(_ scheme: String, _ host: String, _ port: Int) {
      self.scheme = scheme
      self.host = host
      self.port = port
      origin = "\(scheme)://\(host):\(port)"
    }
  }

  public static func == (a: HTTPURL, b: HTTPURL) -> Bool { a.parts === b.parts || a.text == b.text }
  public func hash(into hasher: inout Hasher) { hasher.combine(text) }

  /// Whether both lead to the same server.
  package func isAtServer(of other: HTTPURL) -> Bool { parts.server === other.parts.server || origin == other.origin }

  /// nil when `text` is no absolute http(s) URL, or one with a user or password in it: those belong elsewhere. Nor are
  /// zones (`[fe80::1%eth0]`) taken: they mean something on one machine only, and would end up in the journal.
  public init?(_ text: String) {
    guard let reference = URLReference(text), let scheme = reference.scheme?.lowercased(),
      let standard = Self.standardPorts[scheme], let text = reference.authority,
      let authority = URLAuthority(text), authority.user == nil
    else { return nil }
    let server = Server(scheme, authority.host.lowercased(), authority.port ?? standard)
    let port = authority.port.map { ":\($0)" } ?? ""
    self.init("\(scheme)://\(authority.host)\(port)", path: reference.path, reference.query, server)
  }

  private static let standardPorts = ["http": 80, "https": 443]

  /// The URL that `reference`, absolute or relative, means here. RFC 3986 §5.
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

  /// `place`: scheme, host and port as they stand in the text. Dot segments are removed, and an empty query is none.
  private init(_ place: some StringProtocol, path: Substring, _ query: Substring?, _ server: Server) {
    let path = path.isEmpty ? "/" : URLReference.removingDotSegments(path)
    let query = query.flatMap { $0.isEmpty ? nil : String($0) }
    parts = Parts("\(place)\(path)\(query.map { "?" + $0 } ?? "")", path: path, query: query, server)
  }

  /// For messages: without the query, which may hold a secret.
  public var description: String { query == nil ? text : String(text.prefix { $0 != "?" }) }

  /// Up to and with the last slash of the path; the query is dropped.
  public var folder: HTTPURL {
    if query == nil, path.utf8.last == UInt8(ascii: "/") { return self }
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
    let slash = path.utf8.last == UInt8(ascii: "/") ? "" : "/"
    let encoded = slash + Self.encode(added)
    if query != nil { return replacing(path: path + encoded) }
    return HTTPURL(self, text: text + encoded, path: path + encoded, query: nil)
  }

  /// This place with another query, which must be percent-encoded: a blank, a `#`, or anything that is not ASCII ends the
  /// program.
  public func withQuery(_ query: String) -> HTTPURL {
    precondition(query.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
    return HTTPURL(self, text: "\(description)?\(query)", path: path, query: query)
  }

  /// Nothing needs to be parsed again: only an encoded path is put in the place of another.
  private func replacing(path: String) -> HTTPURL {
    let end = text.utf8.count - (query.map { $0.utf8.count + 1 } ?? 0) - self.path.utf8.count
    var replaced = ""
    replaced.reserveCapacity(end + path.utf8.count)
    replaced += Substring(text.utf8.prefix(end))
    replaced += path
    return HTTPURL(self, text: replaced, path: path, query: nil)
  }

  /// Another place at the origin of `url`.
  private init(_ url: HTTPURL, text: String, path: String, query: String?) {
    parts = Parts(text, path: path, query: query, url.parts.server)
  }

  /// Percent-encodes what is neither unreserved nor a slash.
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
