import BlobHTTP
import BlobUpload
import Blobs

/// The destination of a push, as the user wrote it: `[put+|tus+|resumable+|dav+|form+]http[s]://host/path[/]`,
/// `s3://bucket/folder[/]`, `gs://bucket/folder[/]`.
struct Destination: Sendable, Hashable {
  /// The URL, without the protocol's prefix.
  let endpoint: HTTPURL
  /// `put`, `tus` and so on; nil: the server is queried for its protocols.
  let protocolName: String?
  /// The bucket and the prefix in it; nil: not S3.
  let s3: S3Name?
  /// The address of the bucket, from options and settings; nil: not S3.
  let address: S3Address?
  /// The path ends in a slash, so sources keep their names below it. Otherwise a single source gets exactly this name.
  /// A form is posted to the URL itself, and contains the file's own name.
  var isFolder: Bool { endpoint.path.hasSuffix("/") || isForm }
  /// The receiver decides where a file arrives, whatever the URL.
  var isForm: Bool { traits?.recipient != nil }
  /// Facts about the protocol; nil: it is S3, or the server is queried.
  var traits: UploadTraits? { protocolName.flatMap(KnownProtocols.named)?.traits }

  /// A short name: the bucket, or the server.
  var title: String { s3?.bucket ?? "\(endpoint.host):\(endpoint.port)" }

  struct S3Name: Sendable, Hashable {
    var bucket: String
    var prefix: [UInt8]
  }

  init(_ argument: BytePath, _ options: S3Options = S3Options()) throws(UsageError) {
    let given = "destination '\(shown(argument.withoutSecrets))'"
    guard let end = argument.bytes.firstRange(of: Array("://".utf8)) else {
      let hasColon = ["http:", "https:", "s3:", "gs:"].contains { argument.bytes.starts(with: $0.utf8) }
      throw UsageError(
        "\(given): \(hasColon ? "two slashes are wanted after the colon" : "no scheme"); a destination begins with http://, "
          + "https://, s3:// or gs://")
    }
    var scheme = String(decoding: argument.bytes[..<end.lowerBound], as: UTF8.self).lowercased()
    var name: String?
    if let plus = scheme.firstIndex(of: "+") {
      name = String(scheme[..<plus])
      scheme = String(scheme[scheme.index(after: plus)...])
    }
    if scheme == "s3", name == nil {
      let name = try Self.s3(argument.bytes[end.upperBound...], given)
      let address = try S3Access(bucket: name.bucket, options).address
      guard let bucket = address.url else {
        throw UsageError("\(given): with this endpoint and this bucket there is no URL")
      }
      endpoint = name.prefix.isEmpty ? bucket : bucket.appending(pathBytes: name.prefix)
      (s3, self.address, protocolName) = (name, address, "s3")
      return
    }
    (s3, address) = (nil, nil)
    // The protocol's own server, unless another one is given: gcs+http://127.0.0.1:9023/bucket/.
    var rest = argument.bytes[end.upperBound...]
    if name == nil, let short = KnownProtocols.shorthand(scheme), let server = HTTPURL(short.server) {
      let bucket = String(decoding: rest.prefix { $0 != slash }, as: UTF8.self)
      // The same rules as for s3://.
      if bucket.contains("@") {
        throw UsageError("\(given): credentials do not belong into a URL: use --token-file FILE")
      }
      guard S3Address.isBucketName(bucket) else {
        throw UsageError("\(given): a bucket's name has 3 to 63 letters, digits, dots and hyphens")
      }
      (scheme, name) = (server.scheme, short.name)
      rest = Array(short.server.utf8.dropFirst("\(scheme)://".utf8.count)) + rest
    }
    guard scheme == "http" || scheme == "https" else {
      throw UsageError("\(given): the scheme '\(scheme)' is none we speak; use http:// or https://")
    }
    let traits = name.flatMap(KnownProtocols.named)?.traits
    if let name, traits == nil {
      let known = KnownProtocols.names.map { "\($0)+" }
      throw UsageError(
        "\(given): no protocol is called '\(name)'; known are \(known.dropLast().joined(separator: ", ")) and \(known.last!), "
          + "or none to ask the server")
    }
    protocolName = name
    if rest.prefix(while: { $0 != slash }).contains(UInt8(ascii: "@")) {
      throw UsageError("\(given): user and password in the URL: use --netrc, --token-file FILE or --header @FILE")
    }
    if rest.contains(UInt8(ascii: "#")) {
      if Self.isShareLink(rest) {
        throw UsageError(
          "\(given): this looks like the link of 'serve --share': write its code, which follows the '#', into a file, and "
            + "give the URL before the '#' with --token-file FILE")
      }
      throw UsageError("\(given): a '#' in a name is written %23 in a URL")
    }
    if rest.first == UInt8(ascii: "["), rest.prefix(while: { $0 != UInt8(ascii: "]") }).contains(UInt8(ascii: "%")) {
      throw UsageError(
        "\(given): an address with a zone means something on one machine only: use a name, or another address")
    }
    // libcurl would treat http:///name as a host called "name".
    guard let first = rest.first, first != slash, let typed = HTTPURL("\(scheme)://\(Self.encoded(rest))") else {
      throw UsageError("\(given): this is no URL; wanted is http://host/path/ or https://host:port/path/")
    }
    guard let url = typed.withASCIIHost else { throw UsageError("\(given): \(typed.hostComplaint)") }
    // Into a bucket, where nothing is named but that.
    let namesBucket = traits?.namesBuckets == true
    if namesBucket { try Self.checkObjectName(in: rest, given) }
    let isBucket = namesBucket && url.path.utf8.count > 1 && !url.path.dropFirst().contains("/")
    endpoint = isBucket ? url.resolve("\(url.path)/") ?? url : url
    // Nothing is noted of a push that can never succeed.
    if let traits, let why = UploadDestination.complaint(ofQueryIn: endpoint, traits) {
      throw UsageError("\(given): \(why)")
    }
  }

  /// Parses `bucket/folder/`, as bytes: no character in a name has a special meaning.
  static func s3(_ rest: ArraySlice<UInt8>, _ given: String) throws(UsageError) -> S3Name {
    let bucket = String(decoding: rest.prefix { $0 != slash }, as: UTF8.self)
    if bucket.contains("@") {
      throw UsageError("\(given): keys do not belong into a URL: put them into the environment")
    }
    guard S3Address.isBucketName(bucket) else {
      throw UsageError("\(given): a bucket's name has 3 to 63 letters, digits, dots and hyphens")
    }
    let prefix = rest.dropFirst(bucket.utf8.count + 1)
    try checkFolders(in: Array(prefix), given)
    return S3Name(bucket: bucket, prefix: Array(prefix))
  }

  /// A URL's dot segments are removed, and would lead to another bucket. Requests go to other URLs, without a query.
  private static func checkObjectName(in rest: ArraySlice<UInt8>, _ given: String) throws(UsageError) {
    if rest.contains(UInt8(ascii: "?")) {
      throw UsageError("\(given): a query means nothing in a bucket; a '?' in a name is written %3F")
    }
    try checkFolders(in: PercentCoding.decoded(rest), given)
  }

  /// Clients, proxies and servers disagree on what '.' and '..' mean in the name of an object.
  private static func checkFolders(in name: [UInt8], _ given: String) throws(UsageError) {
    if name.split(separator: slash).contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) {
      throw UsageError("\(given): it has '.' or '..' for a folder, which means nothing in a bucket: leave it out")
    }
  }

  /// Whether the text after the scheme ends like the link of `serve --share`: a folder, and the code in the fragment.
  private static func isShareLink(_ rest: some Collection<UInt8>) -> Bool {
    let parts = Array(rest).split(separator: UInt8(ascii: "#"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts[0].last == slash && parts[1].count >= 6 && !parts[1].contains(slash)
  }

  /// Percent-encodes spaces and bytes outside ASCII, so that users can type a folder's name as it is.
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
  /// A URL for messages: `https://user:secret@host/?sig=…` loses the text before the last `@`, and its query.
  var withoutSecrets: BytePath {
    let scheme = bytes.firstRange(of: Array("://".utf8))
    let end = scheme?.upperBound ?? bytes.startIndex
    var rest = bytes[end...]
    // A mistyped URL may have no scheme, and a path may contain an @: a colon before it indicates a password.
    if let at = rest.lastIndex(of: UInt8(ascii: "@")), scheme != nil || rest[..<at].contains(UInt8(ascii: ":")) {
      rest = Array("…".utf8) + rest[at...]
    }
    let query = rest.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
    if let query, scheme != nil { rest = rest[...query] + Array("…".utf8) }
    return BytePath(bytes[..<end] + rest)
  }
}

private let slash = UInt8(ascii: "/")
