/// Names of files in `Content-Disposition`. RFC 6266.
package enum ContentDisposition {
  /// The last component of the file name as bytes; nil when there is none. `filename*` goes before `filename`.
  package static func fileName(_ field: String?) -> [UInt8]? {
    guard let field else { return nil }
    let parameters = parameters(field)
    let name = parameters["filename*"].flatMap(decoded) ?? parameters["filename"].map { Array($0.utf8) }
    return name?.split(separator: UInt8(ascii: "/")).last.map { Array($0) }
  }

  /// `inline`, with both forms of the name where one does not say it all.
  package static func inline(_ name: some Sequence<UInt8>) -> String {
    let bytes = Array(name)
    let plain = bytes.map { (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C ? $0 : UInt8(ascii: "_") }
    let text = #"inline; filename="\#(String(decoding: plain, as: UTF8.self))""#
    return plain == bytes ? text : "\(text); filename*=UTF-8''\(HTTPURL.encode(bytes))"
  }

  /// Names are in small letters; the first of a name counts.
  static func parameters(_ field: String) -> [String: String] {
    var found: [String: String] = [:]
    var rest = Array(field.unicodeScalars).drop { $0 != ";" }
    while rest.popFirst() != nil {
      let name = String(String.UnicodeScalarView(rest.prefix { $0 != "=" && $0 != ";" })).trimmed.lowercased()
      rest = rest.drop { $0 != "=" && $0 != ";" }
      guard rest.first == "=" else { continue }
      rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" }
      var value = String.UnicodeScalarView()
      if rest.first == "\"" {
        rest.removeFirst()
        while let scalar = rest.popFirst(), scalar != "\"" {
          value.append(scalar == "\\" ? rest.popFirst() ?? scalar : scalar)
        }
        rest = rest.drop { $0 != ";" }
      } else {
        value.append(contentsOf: rest.prefix { $0 != ";" })
        rest = rest.drop { $0 != ";" }
      }
      if found[name] == nil { found[name] = String(value).trimmed }
    }
    return found
  }

  /// `UTF-8''percent-encoded`. RFC 8187 §3.2.
  static func decoded(_ text: String) -> [UInt8]? {
    let parts = text.split(separator: "'", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
    return PercentCoding.decode(parts[2].utf8)
  }
}
