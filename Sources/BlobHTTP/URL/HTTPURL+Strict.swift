extension HTTPURL {
  /// This URL with each byte of its path and query percent-encoded that RFC 3986 does not allow there. It is for Foundation,
  /// which would encode the percent signs of such a URL as well, and so name something else.
  package var strict: HTTPURL {
    let rest = query.map { "\(path)?\($0)" } ?? path
    let strict = Self.strict(rest)
    return strict == rest
      ? self : HTTPURL(String(decoding: text.utf8.dropLast(rest.utf8.count), as: UTF8.self) + strict) ?? self
  }

  private static func strict(_ text: String) -> String {
    let bytes = Array(text.utf8)
    if bytes.indices.allSatisfy({ isAllowed(bytes, at: $0) }) { return text }
    return bytes.indices.map { index in
      isAllowed(bytes, at: index) ? String(decoding: [bytes[index]], as: UTF8.self) : encode([bytes[index]])
    }.joined()
  }

  private static func isAllowed(_ bytes: [UInt8], at index: Int) -> Bool {
    if bytes[index].isUnreserved { return true }
    if bytes[index] == UInt8(ascii: "%") {
      let digits = bytes[(index + 1)...].prefix(2)
      return digits.count == 2 && digits.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }
    return "/?:@!$&'()*+,;=".utf8.contains(bytes[index])
  }
}
