import BlobHTTP
import Blobs

/// Where a push goes, as the user wrote it: `[put+|tus+|resumable+|dav+|form+]http[s]://host/path[/]`.
struct Destination: Sendable, Hashable {
  /// The URL, without the protocol's prefix.
  let endpoint: HTTPURL
  /// `put`, `tus`; nil: ask the server what it speaks.
  let protocolName: String?
  /// The path ends in a slash: sources go into it. Else a single source takes exactly this name.
  /// A form is posted to the URL itself, and says the file's own name.
  var isFolder: Bool { endpoint.path.hasSuffix("/") || protocolName == "form" }

  init(_ argument: BytePath) throws(UsageError) {
    let given = "destination '\(shown(argument.withoutPassword))'"
    guard let end = argument.bytes.firstRange(of: Array("://".utf8)) else {
      throw UsageError("\(given): no scheme; a destination begins with http:// or https://")
    }
    var scheme = String(decoding: argument.bytes[..<end.lowerBound], as: UTF8.self).lowercased()
    var name: String?
    if let plus = scheme.firstIndex(of: "+") {
      name = String(scheme[..<plus])
      scheme = String(scheme[scheme.index(after: plus)...])
    }
    if scheme == "s3" { throw UsageError("\(given): s3:// is planned, but not there yet") }
    guard scheme == "http" || scheme == "https" else {
      throw UsageError("\(given): the scheme '\(scheme)' is none we speak; use http:// or https://")
    }
    switch name {
    case nil, "put", "tus", "resumable", "dav", "form": protocolName = name
    default:
      throw UsageError(
        "\(given): no protocol is called '\(name!)'; known are put+, tus+, resumable+, dav+ and form+, or none to ask the server"
      )
    }
    let rest = argument.bytes[end.upperBound...]
    if rest.prefix(while: { $0 != slash }).contains(UInt8(ascii: "@")) {
      throw UsageError("\(given): user and password in the URL: use --netrc, --token-file FILE or --header @FILE")
    }
    if rest.contains(UInt8(ascii: "#")) {
      throw UsageError("\(given): a '#' in a name is written %23 in a URL")
    }
    if rest.first == UInt8(ascii: "["), rest.prefix(while: { $0 != UInt8(ascii: "]") }).contains(UInt8(ascii: "%")) {
      throw UsageError(
        "\(given): an address with a zone means something on one machine only: use a name, or another address")
    }
    // libcurl would take http:///name for a host called "name".
    guard let first = rest.first, first != slash, let url = HTTPURL("\(scheme)://\(Self.encoded(rest))") else {
      throw UsageError("\(given): this is no URL; wanted is http://host/path/ or https://host:port/path/")
    }
    endpoint = url
  }

  /// Spaces and what is beyond ASCII, percent-encoded, so that a folder's name can be typed as it is.
  private static func encoded(_ bytes: ArraySlice<UInt8>) -> String {
    var text = ""
    for byte in bytes {
      if byte > 0x20 && byte < 0x7F {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += HTTPURL.encode([byte])
      }
    }
    return text
  }
}

extension BytePath {
  /// For messages: `https://user:secret@host/` loses what stands before the `@`, wherever that is.
  var withoutPassword: BytePath {
    let end = bytes.firstRange(of: Array("://".utf8))?.upperBound ?? 0
    guard let at = bytes[end...].lastIndex(of: UInt8(ascii: "@")) else { return self }
    return BytePath(bytes[..<end] + Array("…".utf8) + bytes[at...])
  }
}

private let slash = UInt8(ascii: "/")
