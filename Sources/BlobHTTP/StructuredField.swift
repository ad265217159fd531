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
  package static func integer(_ field: String?) -> Int64? { field.flatMap { number(item($0)) } }

  /// The integer values of a dictionary; other values are left out. The last value of a repeated key counts. nil if the
  /// field is not a dictionary.
  package static func integers(_ field: String?) -> [String: Int64]? {
    guard let field else { return nil }
    var values: [String: Int64] = [:]
    for member in field.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      let parts = item(Substring(member)).utf8.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false
      ).map { Substring($0) }
      let key = parts[0].trimmed
      guard let first = key.utf8.first, first == UInt8(ascii: "*") || (97...122).contains(first) else { return nil }
      values[key] = parts.count == 2 ? number(String(parts[1])) : nil
    }
    return values
  }

  /// An item without parameters and surrounding blanks.
  private static func item(_ field: some StringProtocol) -> String {
    Substring(Substring(field).utf8.prefix { $0 != UInt8(ascii: ";") }).trimmed
  }

  private static func number(_ text: String) -> Int64? {
    let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
    guard (1...15).contains(digits.count), digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}
