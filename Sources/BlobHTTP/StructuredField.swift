/// Parses the structured fields that uploads use. RFC 9651.
///
/// A malformed field, or one of another type, is nil: it is ignored as a whole. Parameters are ignored.
package enum StructuredField {
  /// A boolean: `?1` or `?0`.
  package static func boolean(_ field: String?) -> Bool? {
    switch field.map(item) {
    case "?1": true
    case "?0": false
    default: nil
    }
  }

  /// An integer of up to 15 digits with an optional sign. RFC 9651 §3.3.1.
  package static func integer(_ field: String?) -> Int64? { field.flatMap { number(item($0).utf8) } }

  /// The integer values of a dictionary; other values are left out. The last value of a repeated key counts. nil if the
  /// field is not a dictionary.
  package static func integers(_ field: String?) -> [String: Int64]? {
    guard let field else { return nil }
    var values: [String: Int64] = [:]
    for member in Array(field.utf8).split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      let item = trimmed(member.prefix { $0 != UInt8(ascii: ";") })
      let end = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
      let key = trimmed(item[..<end])
      guard let first = key.first, first == UInt8(ascii: "*") || (97...122).contains(first) else { return nil }
      values[String(decoding: key, as: UTF8.self)] = end < item.endIndex ? number(item[(end + 1)...]) : nil
    }
    return values
  }

  /// An item without parameters and surrounding blanks.
  private static func item(_ field: some StringProtocol) -> String {
    Substring(Substring(field).utf8.prefix { $0 != UInt8(ascii: ";") }).trimmed
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var rest = bytes.drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
  }

  private static func number(_ text: some BidirectionalCollection<UInt8>) -> Int64? {
    let isNegative = text.first == UInt8(ascii: "-")
    let digits = text.dropFirst(isNegative ? 1 : 0)
    guard (1...15).contains(digits.count), digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
    let number = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 48) }
    return isNegative ? -number : number
  }
}
