import Blobs

/// Facts about a file from the server's response to GET.
package struct RemoteFacts: Sendable, Hashable {
  /// Bytes of the whole file; nil if its length is known only at the end.
  package var length: Int64?
  /// nil if the server does not identify a version that can be requested again.
  package private(set) var version: RemoteVersion?
  /// Offset of this response's first byte.
  package private(set) var start: Int64 = 0
  /// Bytes of the range in this response; nil if the response is not of a range.
  var rangeLength: Int64?
  /// The server gives any range of this version.
  var isRandom: Bool
  /// This response does not contain the whole file.
  package private(set) var isPartial = false
  /// When the file was last modified, in nanoseconds since 1970, as the server or the object's metadata tells it; nil: unknown.
  var modified: Int64?
  /// Only the end of the connection ends this response, so a truncated one looks complete. RFC 9112 §6.3, item 8.
  var endsByClosing = false

  /// nil if the response is inconsistent, or has the file in an encoding that was not requested. RFC 9110 §14.4.
  ///
  /// - `isOfRange`: the request had a `Range`. The response to any other request must contain the whole file.
  package init?(_ head: HTTPHead, of url: HTTPURL, isOfRange: Bool = true) {
    let headers = head.headers
    if Self.encoding(headers, of: url) != nil { return nil }
    version = RemoteVersion(headers)
    modified = Self.modified(headers)
    switch isOfRange && Self.isPart(head) ? 206 : head.status {
    case 206:
      // A single range was requested. A multipart response has other bytes between its parts. RFC 9110 §14.6,
      // §15.3.7.2.
      let isInParts = headers["Content-Type"]?.lowercased().hasPrefix("multipart/byteranges") == true
      guard !isInParts, let range = ContentRange(headers["Content-Range"]), let first = range.first else { return nil }
      (start, rangeLength, length, isPartial) = (first, range.count, range.length, true)
      // If the length does not match the range, the offset of the bytes is unknown.
      if headers["Transfer-Encoding"] == nil, let count = headers.bytes("Content-Length"), count != range.count {
        return nil
      }
      if !isOfRange, first != 0 || range.count != range.length { return nil }
      isRandom = version != nil && length != nil
    case 416:
      // A file without a first byte is empty.
      guard ContentRange(headers["Content-Range"])?.length == 0 else { return nil }
      length = 0
      isRandom = version != nil
    case 200:
      length = headers["Transfer-Encoding"] == nil ? headers.bytes("Content-Length") : nil
      // TLS marks its own end, which a broken connection does not produce. RFC 9112 §9.8.
      endsByClosing = length == nil && headers["Transfer-Encoding"] == nil && url.scheme == "http"
      // An empty file needs no ranges.
      isRandom = length == 0 && version != nil
    // 204 has no content, and other success statuses do not carry the requested file.
    default: return nil
    }
  }

  /// Some servers answer 200 to a request for a range, with the range alone and its Content-Range: rclone's S3 server does.
  private static func isPart(_ head: HTTPHead) -> Bool {
    guard head.status == 200, let range = ContentRange(head.headers["Content-Range"]), let count = range.count else {
      return false
    }
    return count != range.length && head.headers.bytes("Content-Length") == count
  }

  /// The content coding of the response, although `identity` was requested; nil if there is none. Some servers label a
  /// file as encoded that is stored in this encoding, as its extension shows; this also returns nil.
  private static func encoding(_ headers: HTTPHeaders, of url: HTTPURL) -> String? {
    let encodings = headers.list("Content-Encoding").filter { !$0.isSameField("identity") }
    guard let first = encodings.first else { return nil }
    let path = url.path.lowercased()
    let isStoredSo = storedEncodings.contains { ending, name in path.hasSuffix(ending) && first.lowercased() == name }
    return isStoredSo && encodings.count == 1 ? nil : first
  }

  private static let storedEncodings = [
    (".gz", "gzip"), (".gz", "x-gzip"), (".tgz", "gzip"), (".tgz", "x-gzip"), (".svgz", "gzip"), (".z", "compress"),
    (".z", "x-compress"), (".br", "br"), (".zst", "zstd"), (".bz2", "bzip2"), (".bz2", "x-bzip2"),
  ]

  /// The error for a successful response without usable facts.
  static func problem(_ head: HTTPHead, of url: HTTPURL) -> BlobError {
    if let encoding = Self.encoding(head.headers, of: url) {
      return BlobError(
        .unsupported,
        "GET \(url): the server sends it encoded (Content-Encoding: \(encoding.prefix(32))) although it was asked for it as "
          + "it is. To send it decoded: curl --compressed URL | fullbore push - DESTINATION; without --compressed it goes "
          + "as it comes")
    }
    let what =
      switch head.status {
      case 206 where ContentRange(head.headers["Content-Range"])?.count != nil:
        "has other bytes than its Content-Range says, or is not what was asked for"
      case 206, 416: "does not say which bytes it has"
      default: "is not that of a file"
      }
    return BlobError(.io, "GET \(url): its answer \(head.status) \(what)")
  }

  /// Objects of S3 have the time of the file in their metadata, and `Last-Modified` is the time of the upload.
  private static func modified(_ headers: HTTPHeaders) -> Int64? {
    let billion: Int64 = 1_000_000_000
    if let parts = headers["x-amz-meta-mtime"]?.split(separator: ".", omittingEmptySubsequences: false),
      parts.count <= 2, let seconds = Int64(digits: parts[0]), seconds < Int64.max / billion
    {
      let fraction = parts.count == 2 ? String(parts[1].prefix(9)) : ""
      let padded = fraction + String(repeating: "0", count: 9 - fraction.count)
      if let rest = Int64(digits: padded[...]) { return seconds * billion + rest }
    }
    guard let seconds = headers["Last-Modified"].flatMap({ HTTPDate.seconds($0) }) else { return nil }
    let (time, isOver) = seconds.multipliedReportingOverflow(by: billion)
    return isOver ? nil : time
  }

  func info(tellingTimes: Bool) -> BlobInfo {
    BlobInfo(
      length: length, validator: version.map { Validator(version: "\($0.text) of \(length.map(String.init) ?? "?")") },
      modified: tellingTimes ? modified : nil)
  }
}

/// Identifies the version of a file on a server, so that a later request can ask for the rest of it.
package enum RemoteVersion: Sendable, Hashable {
  /// A strong ETag.
  case tag(String)
  /// A date from `Last-Modified` that no two versions share, and the weak ETag beside it if there is one.
  case date(String, weakTag: String?)

  package init?(_ headers: HTTPHeaders) {
    let tag = headers["ETag"]
    if let tag, tag.hasPrefix("\""), tag.hasSuffix("\""), tag.count > 1 {
      self = .tag(tag)
      return
    }
    // A date is strong once it is so old that nothing else can be written in the same second. RFC 9110 §8.8.2.2.
    guard let modified = headers["Last-Modified"], let then = HTTPDate.seconds(modified),
      let now = headers["Date"].flatMap({ HTTPDate.seconds($0) }), now - then >= 60
    else { return nil }
    self = .date(modified, weakTag: tag)
  }

  /// The fields that, with `Range`, request a range of this version. If the server sends an ETag, `If-Range` must
  /// contain neither a date nor a weak ETag; `If-Unmodified-Since` then gives 412 for another version. RFC 9110
  /// §13.1.4, §13.1.5.
  package var condition: HTTPHeaders {
    switch self {
    case .tag(let tag): ["If-Range": tag]
    case .date(let date, nil): ["If-Range": date]
    case .date(let date, _?): ["If-Unmodified-Since": date]
    }
  }

  var text: String {
    switch self {
    case .tag(let tag): tag
    case .date(let date, let tag): tag.map { "\(date) \($0)" } ?? date
    }
  }
}

/// A `Content-Range` value: `bytes 0-499/1234` or `bytes */1234`. RFC 9110 §14.4.
package struct ContentRange: Sendable, Hashable {
  /// Offset of the range's first byte; nil for an unsatisfied range.
  package private(set) var first: Int64?
  /// Bytes of the range; nil for an unsatisfied range.
  var count: Int64?
  /// Bytes of the whole file; nil if unknown.
  var length: Int64?

  package init?(_ field: String?) {
    guard let field, field.lowercased().hasPrefix("bytes ") else { return nil }
    let parts = field.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    length = Int64(digits: parts[1])
    if length == nil, parts[1] != "*" { return nil }
    if parts[0] == "*" { return }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64(digits: $0) }
    guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < length ?? .max else {
      return nil
    }
    (self.first, count) = (first, (last - first).addingClamped(1))
  }
}
