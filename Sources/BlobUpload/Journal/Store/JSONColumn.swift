#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values in columns of text.
package enum JSONColumn {
  /// Equal values give the same text.
  package static func encode(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Strings, numbers and dictionaries of them can always be encoded.
    return String(decoding: try! encoder.encode(value), as: UTF8.self)
  }

  /// The ids for `json_each`.
  static func list(_ ids: some Sequence<Int64>) -> String { "[\(ids.map(String.init).joined(separator: ","))]" }

  /// nil for invalid text; the callers decide what to do.
  package static func decode<Value: Decodable>(_ text: String) -> Value? {
    try? JSONDecoder().decode(Value.self, from: Data(text.utf8))
  }
}
