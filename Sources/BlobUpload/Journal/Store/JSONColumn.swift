import BlobHTTP

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

  /// A session is written for each upload, so Foundation's encoder, which would take longer than all else that is done for a
  /// small file, is not used. The text is the same.
  static func encode(_ session: UploadSession) -> String {
    let limits = session.limits
    var text = "{"
    func add(_ key: String, _ number: Int64?) {
      guard let number else { return }
      if text.utf8.last != UInt8(ascii: "{") { text += "," }
      text += "\"\(key)\":\(number)"
    }
    add("expires", session.expires)
    text += session.expires == nil ? "\"limits\":{" : ",\"limits\":{"
    add("count", limits.count.map { Int64($0) })
    add("firstPart", limits.firstPart)
    text += ",\"isParallel\":\(limits.isParallel)"
    add("largest", limits.largest)
    text += ",\"needsLength\":\(limits.needsLength)"
    add("smallest", limits.smallest)
    add("total", limits.total)
    add("usual", limits.usual)
    text += "},\"state\":"
    return text + encode(session.state) + "}"
  }

  static func encode(_ words: [String: String]) -> String {
    var text = "{"
    for (key, value) in words.sorted(by: { $0.key < $1.key }) {
      if text.utf8.count > 1 { text += "," }
      text += JSONText.quoted(key)
      text += ":"
      text += JSONText.quoted(value)
    }
    return text + "}"
  }

  /// The ids for `json_each`.
  static func list(_ ids: some Sequence<Int64>) -> String { "[\(ids.map(String.init).joined(separator: ","))]" }

  /// nil for invalid text; the callers decide what to do.
  package static func decode<Value: Decodable>(_ text: String) -> Value? {
    try? JSONDecoder().decode(Value.self, from: Data(text.utf8))
  }
}
