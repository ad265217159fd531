/// Writes JSON. RFC 8259 §7.
package enum JSONText {
  /// `text` as a JSON string with quotation marks, on one line: control characters and the separators U+2028 and U+2029 are escaped too.
  package static func quoted(_ text: String) -> String {
    // Most texts have nothing to escape.
    if text.utf8.allSatisfy({ 0x20...0x7E ~= $0 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
      return "\"\(text)\""
    }
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{0}"..<" ", "\u{7F}"..."\u{9F}", "\u{2028}"..."\u{2029}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
