import BlobHTTP
import CMicrohttpd
import Platform

/// Collects the fields of a head or a trailer from libmicrohttpd, and checks how they were written.
///
/// A proxy in front may understand a malformed head in another way than libmicrohttpd and so take a part of one request
/// for the next request (request smuggling). Such a head is refused. RFC 9112 §2.2, §5, §11.2.
struct HeadCheck {
  private(set) var headers = HTTPHeaders()
  /// What is wrong with the fields so far; nil: nothing.
  private(set) var problem: String?
  /// Where the next line must begin; nil: not known.
  private var next: UnsafePointer<CChar>?

  /// Of a trailer, whose beginning is not known.
  init() {}

  /// `version`: the end of the request line.
  init(behind version: UnsafePointer<CChar>) {
    guard Self.readsLines else { return }
    next = Self.lineBehind(version)
    if next == nil { problem = Self.brokenLine }
  }

  /// libmicrohttpd up to 0.9.75 also takes a bare LF for the end of a line, and glues folded lines together. It overwrites
  /// the end of each line with NULs in its buffer, where CRLF leaves two and a bare LF one. Later versions check this by
  /// themselves (`MHD_OPTION_STRICT_FOR_CLIENT`) and may keep lines in another way.
  static let readsLines: Bool = {
    let version = String(cString: MHD_get_version()).utf8.split(separator: UInt8(ascii: ".")).compactMap {
      Int(Substring($0))
    }
    return version.lexicographicallyPrecedes([0, 9, 76])
  }()

  /// The line behind `text`, which must end with CRLF; nil when it does not.
  private static func lineBehind(_ text: UnsafePointer<CChar>) -> UnsafePointer<CChar>? {
    let end = text + strlen(text)
    return end[0] == 0 && end[1] == 0 ? end + 2 : nil
  }

  mutating func add(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) {
    let field = String(cString: name)
    headers.add(field, value.map { String(cString: $0).trimmed } ?? "")
    if problem != nil { return }
    if field.isEmpty || !field.utf8.allSatisfy(Self.isOfToken) {
      problem = "the name of a header field has a character that no name may have"
    } else if let value, !Self.isPlain(value) {
      problem = "the header field \(field) has a control character in it"
    } else if let value, field.isSameField("Transfer-Encoding"), hasBlankAtEnd(value) {
      // libmicrohttpd up to 0.9.75 would read such a body to the end of the connection.
      problem = "the transfer coding has a blank behind it"
    }
    guard Self.readsLines, let value else { return }
    let follows = next.map { $0 == name } ?? true
    next = Self.lineBehind(value)
    if !follows || next == nil { problem = problem ?? Self.brokenLine }
  }

  /// The fields must end in an empty line that ends at `end`.
  mutating func finish(at end: UnsafePointer<CChar>) {
    guard Self.readsLines, problem == nil, let next else { return }
    if next + 2 != end { problem = Self.brokenLine }
  }

  private static let brokenLine = "a line of the head is folded, has a NUL in it, or does not end with CRLF"

  /// RFC 9110 §5.6.2.
  private static func isOfToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  private func hasBlankAtEnd(_ value: UnsafePointer<CChar>) -> Bool {
    let count = strlen(value)
    return count > 0 && [32, 9].contains(value[count - 1])
  }

  /// RFC 9110 §5.5: a tab is the only control character that a value may have.
  private static func isPlain(_ value: UnsafePointer<CChar>) -> Bool {
    var place = value
    while place.pointee != 0 {
      let byte = UInt8(bitPattern: place.pointee)
      if byte < 32 && byte != 9 || byte == 127 { return false }
      place += 1
    }
    return true
  }
}

extension HeadCheck {
  /// What is wrong with how the head tells the length of its body; nil: nothing. RFC 9112 §6.
  ///
  /// `fields` are as they were sent, but for blanks around values.
  static func framingProblem(_ method: String, _ headers: HTTPHeaders, isHTTP11: Bool) -> ServerError? {
    var (length, lengths): (String?, Int) = (nil, 0)
    var (coding, codings): (String?, Int) = (nil, 0)
    for (name, value) in headers.fields {
      if name.isSameField("Content-Length") { (length, lengths) = (value, lengths + 1) }
      if name.isSameField("Transfer-Encoding") { (coding, codings) = (value, codings + 1) }
    }
    if let length {
      if lengths > 1 {
        return ServerError(400, "a request may have one Content-Length, this one has \(lengths)")
      }
      if coding != nil { return ServerError(400, "a request may not have Transfer-Encoding and Content-Length") }
      if length.isEmpty || !length.utf8.allSatisfy({ (48...57).contains($0) }) {
        return ServerError(400, "Content-Length must be a decimal number")
      }
    }
    guard let coding else {
      // The body would end with the connection, as it does when the connection breaks.
      let lacksLength = !isHTTP11 && length == nil && ["PUT", "POST", "PATCH"].contains(method)
      return lacksLength ? ServerError(411, "\(method) in HTTP/1.0 needs a Content-Length") : nil
    }
    if codings > 1 {
      return ServerError(400, "a request may have one Transfer-Encoding, this one has \(codings)")
    }
    if !isHTTP11 { return ServerError(400, "HTTP/1.0 has no Transfer-Encoding") }
    if coding.isEmpty { return ServerError(400, "Transfer-Encoding is empty") }
    if coding.isSameField("chunked") { return nil }
    return ServerError(501, "the transfer coding '\(coding.prefix(100))' is not spoken")
  }
}
