/// The components of a URL or a relative reference, as written. RFC 3986 §3 and appendix B.
package struct URLReference {
  /// The scheme without the colon; nil in a relative reference.
  package let scheme: Substring?
  /// The authority without the two slashes before it; nil if there are none.
  package let authority: Substring?
  /// The path; may be empty. Bytes outside ASCII are percent-encoded, so that each character is one byte: a combining mark
  /// would make one character with the slash before it. RFC 3987 §3.1.
  package let path: Substring
  /// The query without the question mark, in the same form; nil if there is none.
  package let query: Substring?

  /// nil if the text contains white space or a control character. The fragment is dropped, because it is not sent to
  /// servers.
  package init?(_ text: String) {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
    var rest = text.utf8[...]
    if let hash = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<hash] }
    var query: Substring?
    if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
      query = Substring(rest[rest.index(after: mark)...])
      rest = rest[..<mark]
    }
    self.query = query.map(Self.ascii)
    scheme = Self.takeScheme(&rest)
    let slashes = rest.prefix(2)
    if slashes.count == 2, slashes.allSatisfy({ $0 == UInt8(ascii: "/") }) {
      let start = slashes.endIndex
      let end = rest[start...].firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      authority = Substring(rest[start..<end])
      rest = rest[end...]
    } else {
      authority = nil
    }
    path = Self.ascii(Substring(rest))
  }

  /// Percent-encodes all bytes outside ASCII.
  private static func ascii(_ text: Substring) -> Substring {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text }
    var encoded = ""
    for byte in text.utf8 {
      encoded += byte < 0x80 ? String(Unicode.Scalar(byte)) : HTTPURL.encode(CollectionOfOne(byte))
    }
    return encoded[...]
  }

  /// Removes the scheme from the front of `text`; nil if there is none. RFC 3986 §3.1.
  private static func takeScheme(_ text: inout Substring.UTF8View) -> Substring? {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let name = text[..<colon]
    guard let first = name.first, first.isASCIILetter,
      name.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) })
    else { return nil }
    text = text[text.index(after: colon)...]
    return Substring(name)
  }

  /// Resolves the segments `.` and `..` of a path. RFC 3986 §5.2.4. The dots may be percent-encoded, since servers
  /// decode them (§6.2.2.2).
  static func removingDotSegments(_ path: some StringProtocol) -> String {
    // Most paths have none.
    if !mayHaveDotSegment(path.utf8) { return String(path) }
    var kept: [Substring] = []
    let segments = Substring(path).utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { Substring($0) }
    for (number, segment) in segments.enumerated() {
      let isLast = number == segments.count - 1
      switch dots(segment) {
      case 0: kept.append(segment)
      case 2:
        // The empty segment before the first slash stays.
        if kept.count > 1 { kept.removeLast() }
        if isLast { kept.append("") }
      default: if isLast { kept.append("") }
      }
    }
    return kept.joined(separator: "/")
  }

  /// Whether a segment may be `.` or `..`. False for a segment that begins with a dot and continues with another byte.
  private static func mayHaveDotSegment(_ path: some Sequence<UInt8>) -> Bool {
    var (isFirst, isDot) = (true, false)
    for byte in path {
      if isFirst, byte == UInt8(ascii: "%") { return true }
      if isDot, byte == UInt8(ascii: ".") || byte == UInt8(ascii: "%") || byte == UInt8(ascii: "/") { return true }
      isDot = isFirst && byte == UInt8(ascii: ".")
      isFirst = byte == UInt8(ascii: "/")
    }
    return isDot
  }

  /// 1 for `.`, 2 for `..`, 0 for every other segment.
  private static func dots(_ segment: Substring) -> Int {
    if segment.utf8.count > 6 { return 0 }
    switch segment.lowercased() {
    case ".", "%2e": return 1
    case "..", ".%2e", "%2e.", "%2e%2e": return 2
    default: return 0
    }
  }
}

extension UInt8 {
  var isASCIILetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 }
  var isASCIIDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
}
