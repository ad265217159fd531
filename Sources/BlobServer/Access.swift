import BlobCrypto
import BlobHTTP
import Blobs

/// Decides by the host that it names and by its credentials whether a request is processed.
struct Access: Sendable {
  let hosts: HostRule
  private let token: String?
  private let hasPage: Bool
  /// nil: no tickets are needed.
  private let tickets: TicketKey?

  init(_ options: ServerOptions, _ hosts: HostRule) {
    self.hosts = hosts
    token = options.token
    hasPage = options.page != nil
    tickets = token.map { TicketKey($0, options.folder) }
  }

  /// Makes the key of the tickets, so that no request waits for it. Blocks for a short time.
  func prepare() { _ = tickets?.value }

  /// The response to a request without valid credentials; nil: it has them, or needs none. Three kinds are valid: the
  /// token as a Bearer token (RFC 6750 §2.1), the token as the password of any user (RFC 7617), and for reading one file
  /// or the archive of one folder, a ticket in the query.
  func refusal(_ method: String, _ target: RequestTarget, _ headers: HTTPHeaders) -> Reply? {
    guard let token else { return nil }
    let parts = headers["Authorization"]?.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1) ?? []
    if parts.count == 2 {
      let value = Substring(parts[1]).trimmed
      if Substring(parts[0]).isSameField("Bearer"), isSame(value.utf8, token.utf8) { return nil }
      if Substring(parts[0]).isSameField("Basic"), let password = Self.password(value), isSame(password, token.utf8) {
        return nil
      }
    }
    if method == "GET" || method == "HEAD", isTicket(target) { return nil }
    var reply = Reply(401, ["WWW-Authenticate": "Bearer realm=\"fullbore\""], text: "a valid Bearer token is required")
    if offersBasic(headers) { reply.headers.add("WWW-Authenticate", "Basic realm=\"fullbore\"") }
    return reply
  }

  /// Whether a request without valid credentials is told that a password is taken too. Programs such as wget send theirs only
  /// then. A browser shows a dialog, so it is told only where it opens a page, and never where the server's own page asks for
  /// the code itself.
  private func offersBasic(_ headers: HTTPHeaders) -> Bool {
    if headers.acceptsHTML { return !hasPage }
    let scheme = headers["Authorization"]?.prefix { $0 != " " }
    return scheme?.isSameField("Bearer") != true && !headers.areOfBrowser
  }

  /// The ticket that lets any client read the file at `path`; nil: none is needed.
  func ticket(for path: ServedPath) -> String? { ticket(path.bytes) }

  /// The ticket that lets any client read the archives of the folder at `path`; nil: none is needed.
  func ticket(forArchiveOf path: ServedPath) -> String? { ticket(path.bytes + [UInt8(ascii: "/")]) }

  private func ticket(_ place: [UInt8]) -> String? {
    tickets.map { Digest.hex(HMAC.sha256(place, key: $0.value).prefix(16)) }
  }

  private func isTicket(_ target: RequestTarget) -> Bool {
    guard let given = try? target.value(of: "ticket"), let (path, isFolder) = try? ServedPath.fromURL(target.path)
    else {
      return false
    }
    // The ticket of a folder is for its archive, and not for the list.
    if isFolder != target.asksForArchive { return false }
    guard let wanted = isFolder ? ticket(forArchiveOf: path) : ticket(for: path) else { return false }
    return isSame(given, wanted.utf8)
  }

  /// The password in the credentials of Basic authentication; nil: they are invalid. RFC 7617 §2.
  private static func password(_ credentials: String) -> [UInt8]? {
    guard let bytes = Base64.decode(credentials), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
      return nil
    }
    return Array(bytes[(colon + 1)...])
  }

  /// Compares in constant time, independent of the position of a wrong byte.
  private func isSame(_ given: some Collection<UInt8>, _ wanted: some Collection<UInt8>) -> Bool {
    let given = Array(given)
    let wanted = Array(wanted)
    var difference = given.count ^ wanted.count
    for index in given.indices where !wanted.isEmpty {
      difference |= Int(given[index] ^ wanted[index % wanted.count])
    }
    return difference == 0
  }
}

extension HTTPHeaders {
  /// Whether the client asks for a page, as browsers do that open a URL.
  var acceptsHTML: Bool { accepts("text/html") }

  /// Whether a browser sends the request, whatever it is for. Browsers tell their user's languages with each request, also
  /// with those of scripts and pictures; programs such as curl and wget have none to tell.
  var areOfBrowser: Bool { self["Accept-Language"] != nil || self["Sec-Fetch-Mode"] != nil }

  /// Whether `Accept` names this media type; a wildcard does not count. RFC 9110 §12.5.1.
  func accepts(_ type: String) -> Bool {
    list("Accept").contains { $0.prefix { $0 != ";" }.trimmed.isSameField(type) }
  }
}
