import Blobs

/// What a server says of a file in an answer to GET.
struct RemoteFacts: Sendable, Hashable {
  /// Bytes of the whole; nil when only the end will tell.
  var length: Int64?
  /// nil: the server does not name one that could be asked for again.
  var version: RemoteVersion?
  /// Offset of the first byte of this answer.
  var start: Int64 = 0
  /// Bytes of the range that this answer is of; nil: it is of no range.
  var rangeLength: Int64?
  /// Any range can be had, of this very version.
  var isRandom: Bool
  /// Not all of it comes with this answer.
  var isPartial = false
  /// Only the end of the connection ends this answer, so one that is cut looks whole. RFC 9112 §6.3, item 8.
  var endsByClosing = false

  /// nil where the answer does not add up, or has the file in another form than asked for. RFC 9110 §14.4.
  ///
  /// `isOfRange`: a range was asked for. An answer to any other request has the whole, whatever its status.
  init?(_ head: HTTPHead, of url: HTTPURL, isOfRange: Bool = true) {
    let headers = head.headers
    if Self.encoding(headers, of: url) != nil { return nil }
    version = RemoteVersion(headers)
    switch head.status {
    case 206:
      // One range was asked for, and several parts have other bytes between theirs. RFC 9110 §14.6, §15.3.7.2.
      let isInParts = headers["Content-Type"]?.lowercased().hasPrefix("multipart/byteranges") == true
      guard !isInParts, let range = ContentRange(headers["Content-Range"]), let first = range.first else { return nil }
      (start, rangeLength, length, isPartial) = (first, range.count, range.length, true)
      // An answer that has other bytes than it says may have them from anywhere.
      if headers["Transfer-Encoding"] == nil, let count = headers.bytes("Content-Length"), count != range.count {
        return nil
      }
      if !isOfRange, first != 0 || range.count != range.length { return nil }
      isRandom = version != nil && length != nil
    case 416:
      // No first byte: it is empty.
      guard ContentRange(headers["Content-Range"])?.length == 0 else { return nil }
      length = 0
      isRandom = version != nil
    case 200:
      length = headers["Transfer-Encoding"] == nil ? headers.bytes("Content-Length") : nil
      // TLS has an end of its own, which a cut does not forge. RFC 9112 §9.8.
      endsByClosing = length == nil && headers["Transfer-Encoding"] == nil && url.scheme == "http"
      // Ranges of an empty file need none.
      isRandom = length == 0 && version != nil
    // 204 has no file, and another success is not the file that was asked for.
    default: return nil
    }
  }

  /// How what comes was changed although it was asked for as it is; nil: it was not. Some servers call a file encoded that
  /// was stored so, as its name says.
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

  /// Why a success has no usable facts.
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

  var info: BlobInfo {
    BlobInfo(
      length: length, validator: version.map { Validator(version: "\($0.text) of \(length.map(String.init) ?? "?")") })
  }
}

/// Which version of a file a server has, so that the rest of this very one can be asked for.
enum RemoteVersion: Sendable, Hashable {
  /// A strong ETag.
  case tag(String)
  /// A date of `Last-Modified` that no two versions share, with the ETag beside it, which is a weak one.
  case date(String, weakTag: String?)

  init?(_ headers: HTTPHeaders) {
    let tag = headers["ETag"]
    if let tag, tag.hasPrefix("\""), tag.hasSuffix("\""), tag.count > 1 {
      self = .tag(tag)
      return
    }
    // A date is strong once it lies so far back that nothing can still be written in the same second. RFC 9110 §8.8.2.2.
    guard let modified = headers["Last-Modified"], let then = HTTPDate.seconds(modified),
      let now = headers["Date"].flatMap({ HTTPDate.seconds($0) }), now - then >= 60
    else { return nil }
    self = .date(modified, weakTag: tag)
  }

  /// The fields that, beside `Range`, ask for a range of this very version. Where there is an ETag, `If-Range` must not have a date, nor a
  /// weak ETag: then another version is refused (412). RFC 9110 §13.1.4, §13.1.5.
  var condition: HTTPHeaders {
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

/// `bytes 0-499/1234`, `bytes */1234`. RFC 9110 §14.4.
struct ContentRange: Sendable, Hashable {
  /// nil: of no range.
  var first: Int64?
  /// Bytes of the range; nil: of no range.
  var count: Int64?
  /// Of the whole; nil: unknown.
  var length: Int64?

  init?(_ field: String?) {
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
