import BlobHTTP
import BlobUpload
import Blobs

/// A destination with a name, from `config.toml`: its URL, and values for options that the command line does not give.
struct Place: Sendable {
  let name: String
  /// As the user wrote it. It has neither a query nor credentials.
  let url: String
  /// Values by the names of options. A flag that is set has an empty array.
  var values: [String: [BytePath]] = [:]
  /// Where each value stands: `FILE:LINE:COLUMN`.
  var positions: [String: String] = [:]

  /// The URL of a place that is not in S3, without the prefix of a protocol; nil: it is in S3.
  var endpoint: HTTPURL? { destination?.endpoint }

  /// nil: the place is in S3, whose settings are read only when it is used.
  private var destination: Destination? { isS3 ? nil : try? Destination(BytePath(url)) }
  private var isS3: Bool { url.lowercased().hasPrefix("s3:") }

  /// The text before the colon in `nas:2026/`.
  static func isName(_ text: some StringProtocol) -> Bool {
    1...64 ~= text.unicodeScalars.count && text.unicodeScalars.allSatisfy(TOMLReader.isBareKey)
  }

  /// Names that would be mistaken for schemes, or for the prefixes of protocols.
  static let reserved = Set(["http", "https", "s3", "gs", "file", "sqlite"]).union(KnownProtocols.names)

  /// The options with which credentials are given. The credential options of a place are used together, or not at all.
  static let credentials: Set = Set(
    ["token-file", "netrc", "netrc-file", "header"] + SecretCommand.declared.map(\.name))

  /// The options that are for the place's own server, and for no other.
  static let ofServer: Set = credentials.union(["profile", "cacert", "insecure", "proxy"])

  /// Options that concern one run, and therefore no place. `overwrite` loses files at the destination, so it must be
  /// given each time.
  private static let ofOneRun: Set = [
    "also", "overwrite", "dry-run", "name", "identity", "journal", "json", "quiet", "verbose",
  ]

  /// Every setting that a place may have beside its URL.
  static let settings = WatchOptions.declared.filter { !ofOneRun.contains($0.name) } + SecretCommand.declared

  /// The URL of `path` below this place. `path` consists of names as they are, without percent-encoding.
  func destination(of path: BytePath) throws(UsageError) -> BytePath {
    let given = "destination '\(name):\(shown(path))'"
    if path.isAbsolute {
      throw UsageError("\(given): what follows the colon is below the place already: leave out the slash after it")
    }
    if path.components.contains(where: { $0 == "." || $0 == ".." }) {
      throw UsageError("\(given): '.' and '..' could lead out of the place: leave them out")
    }
    let destination = destination
    if destination?.isForm == true, !path.isEmpty {
      throw UsageError("\(given): a form is always posted to its own URL: write '\(name):'")
    }
    var result = BytePath(url)
    // The URL at which tus uploads are created, and that of a form, may end without a slash.
    let keepsURL = path.isEmpty && (destination?.isForm == true || destination?.traits?.namesInFields == true)
    if !result.hasTrailingSlash, !keepsURL { result.bytes.append(UInt8(ascii: "/")) }
    result.bytes += isS3 ? path.bytes : Array(HTTPURL.encode(path.bytes).utf8)
    return result
  }

  /// Whether uploads to this URL go to this place, so that its credentials belong to them.
  func contains(_ url: HTTPURL) -> Bool {
    guard let endpoint, endpoint.origin == url.origin else { return false }
    return DestinationChoice.isAtOrBelow(Array(url.normalized.path.utf8), Array(endpoint.normalized.path.utf8))
  }

  /// The bucket and prefix of a place in S3; nil: the place is elsewhere.
  var bucket: Destination.S3Name? {
    isS3 ? try? Destination.s3(Array(url.utf8.dropFirst("s3://".utf8.count))[...], "url") : nil
  }

  /// The path, or the prefix in the bucket, without a slash at its end.
  private var path: [UInt8] {
    let path = bucket?.prefix ?? endpoint.map { Array($0.normalized.path.utf8) } ?? []
    return path.last == UInt8(ascii: "/") ? path.dropLast() : path
  }

  /// Of two places that contain an upload, the one with the longer path is nearer.
  var pathLength: Int { path.count }

  /// Whether the journal would take what was sent to this place as sent to `other`, which may be another account at the
  /// same URL. The journal tells accounts apart by a user's name, which neither a token nor a request field has.
  func canBeMistaken(for other: Place) -> Bool {
    guard let endpoint, let otherEndpoint = other.endpoint, endpoint.origin == otherEndpoint.origin, path == other.path
    else { return false }
    if namesUser && other.namesUser { return false }
    return !Self.credentials.allSatisfy { values[$0] == other.values[$0] }
  }

  private var namesUser: Bool { ["account", "user", "netrc", "netrc-file"].contains { values[$0] != nil } }

  /// Whether it has credentials. The name of an account is none.
  var hasCredentials: Bool { Self.credentials.contains { $0 != "account" && values[$0] != nil } }

  /// Whether what is sent to it is sealed.
  var seals: Bool { SealOptions.declared.contains { values[$0.name] != nil } }

  /// The place's credentials in words, without the secret; nil: the place has none.
  var credentials: String? {
    let words = Self.settings.filter { Self.credentials.contains($0.name) }.compactMap { option -> String? in
      guard let values = values[option.name] else { return nil }
      // The text of a command may have a secret in it.
      let showsValue = option.value != nil && !option.name.hasSuffix("-command")
      return showsValue ? "\(option.name) \(values.map { shown($0) }.joined(separator: ", "))" : option.name
    }
    return words.isEmpty ? nil : words.joined(separator: ", ")
  }
}
