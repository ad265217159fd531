/// Reads and writes file names in `Content-Disposition`. RFC 6266.
package enum ContentDisposition {
  /// The last path component of the file name, as bytes; nil if there is none. `filename*` takes precedence over
  /// `filename`.
  package static func fileName(_ field: String?) -> [UInt8]? {
    guard let field else { return nil }
    let parameters = parameters(field)
    let name = parameters["filename*"].flatMap(decoded) ?? parameters["filename"].map { Array($0.utf8) }
    return name?.split(separator: UInt8(ascii: "/")).last.map { Array($0) }
  }

  /// An `inline` value. `filename*` is added when `filename` alone cannot express the name.
  package static func inline(_ name: some Sequence<UInt8>) -> String {
    let bytes = Array(name)
    let plain = bytes.map { (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C ? $0 : UInt8(ascii: "_") }
    let text = #"inline; filename="\#(String(decoding: plain, as: UTF8.self))""#
    return plain == bytes ? text : "\(text); filename*=UTF-8''\(HTTPURL.encode(bytes))"
  }

  /// The parameters, with lower-case names. The first value of a repeated name counts.
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

  /// Decodes `UTF-8''percent-encoded`; nil for any other charset or syntax. RFC 8187 §3.2.
  static func decoded(_ text: String) -> [UInt8]? {
    let parts = text.split(separator: "'", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
    return PercentCoding.decode(parts[2].utf8)
  }
}
