import BlobCrypto
import BlobHTTP
import Blobs

/// A file at a URL to be uploaded.
struct URLSource: Sendable, Hashable {
  let url: HTTPURL
  /// The last component of the URL's path.
  let name: BytePath

  /// nil if `argument` is not a URL.
  init?(_ argument: BytePath) throws(UsageError) {
    guard Self.isURL(argument) else { return nil }
    let given = "source '\(shown(argument.withoutSecrets))'"
    guard let text = String(validating: argument.bytes, as: UTF8.self), let typed = HTTPURL(text) else {
      throw UsageError("\(given): this is no URL that can be read\(Self.hint(argument))")
    }
    guard let url = typed.withASCIIHost else { throw UsageError("\(given): \(typed.hostComplaint)") }
    self.url = url
    name = BytePath(url.lastComponent).name
  }

  /// A hint about a common error in the URL; empty if none is recognized.
  private static func hint(_ argument: BytePath) -> String {
    let rest = argument.bytes.firstRange(of: Array("://".utf8)).map { argument.bytes[$0.upperBound...] } ?? []
    if rest.prefix(while: { $0 != UInt8(ascii: "/") }).contains(UInt8(ascii: "@")) {
      return "; user and password do not belong into it"
    }
    return rest.contains(UInt8(ascii: " ")) ? "; a space in it is written %20" : "; wanted is http://host/path"
  }

  static func isURL(_ path: BytePath) -> Bool {
    ["http://", "https://"].contains { path.bytes.starts(with: $0.utf8) }
  }

  /// The source's identity in the journal. A query may be secret, so its digest replaces it.
  var identity: BytePath {
    guard let query = url.query else { return BytePath(url.text) }
    return BytePath("\(url)\(Self.hidden)\(Digest.hex(of: Array(query.utf8), .sha256).prefix(16))")
  }
  private static let hidden = "?#"

  /// Parses an identity from the journal; nil if it contained a query.
  init?(kept identity: BytePath) {
    guard let url = HTTPURL(identity.description), !identity.description.contains(Self.hidden) else { return nil }
    self.url = url
    name = BytePath(url.lastComponent).name
  }

  /// Whether the name is a valid file name.
  var hasName: Bool { !name.isEmpty && name != "." && name != ".." }
}

extension BytePath {
  /// Whether the argument is a URL with this scheme, not a path.
  func hasScheme(_ scheme: String) -> Bool { bytes.starts(with: Array(scheme.utf8) + [UInt8(ascii: ":")]) }

  /// The path of a `file:` URL; any other argument unchanged.
  func withoutFileScheme() throws(UsageError) -> BytePath {
    guard hasScheme("file") else { return self }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw UsageError("source '\(shown(self))': this is no URL that can be read")
    }
    do throws(BlobError) {
      return (try SourceResolver.files.source(for: text) as? FileSource)?.path ?? self
    } catch {
      throw UsageError("source '\(shown(self))': \(error.message)")
    }
  }
}
