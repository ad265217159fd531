/// The parsed header block of a form's part. RFC 7578 §4.
package struct MultipartHead: Sendable, Equatable {
  /// The field's name.
  package let name: [UInt8]
  /// The file name without folders; nil if the part is not a file. Empty for a file field without a selected file.
  package let fileName: [UInt8]?
  package let contentType: String?

  /// `bytes` are lines that end with CRLF; the last line is empty.
  init(_ bytes: [UInt8]) throws(MultipartError) {
    var fields: [(name: String, value: ArraySlice<UInt8>)] = []
    for line in bytes.split(separator: 10).map({ $0.dropLast() }) where !line.isEmpty {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
        line[..<colon].allSatisfy({ $0 > 32 && $0 < 127 })
      else { throw MultipartError("a line of a part's head is no field") }
      if line.contains(0) { throw MultipartError("a part's head has a NUL in it") }
      let name = String(decoding: line[..<colon], as: UTF8.self)
      fields.append((name, line[(colon + 1)...].drop { $0 == 32 || $0 == 9 }))
    }
    func field(_ name: String) throws(MultipartError) -> ArraySlice<UInt8>? {
      let found = fields.filter { $0.name.isSameField(name) }
      if found.count > 1 { throw MultipartError("a part has \(name) twice") }
      return found.first?.value
    }
    let coding = try field("Content-Transfer-Encoding").map { String(decoding: $0, as: UTF8.self).trimmed.lowercased() }
    if let coding, !["7bit", "8bit", "binary"].contains(coding) {
      throw MultipartError(415, "parts must come as they are, without Content-Transfer-Encoding")
    }
    let codings = try field("Content-Encoding").map { String(decoding: $0, as: UTF8.self).trimmed } ?? ""
    if !codings.isEmpty, !codings.isSameField("identity") {
      throw MultipartError(415, "parts must come as they are, without Content-Encoding")
    }
    guard let disposition = try field("Content-Disposition"),
      let parameters = try Self.parameters(disposition, of: "form-data")
    else { throw MultipartError("a part has no 'Content-Disposition: form-data'") }
    guard let name = parameters["name"] else { throw MultipartError("a part has no name") }
    self.name = Self.unescaped(name)
    let encoded = parameters["filename*"].flatMap { ContentDisposition.decoded(String(decoding: $0, as: UTF8.self)) }
    fileName = (encoded ?? parameters["filename"].map(Self.unescaped)).map(Self.last)
    contentType = try field("Content-Type").map { String(decoding: $0, as: UTF8.self).trimmed }
  }

  /// The parameters with lower-case names. nil if the value does not begin with `kind`.
  private static func parameters(
    _ text: ArraySlice<UInt8>, of kind: String
  ) throws(MultipartError) -> [String: [UInt8]]? {
    let word = text.prefix { $0 != UInt8(ascii: ";") }
    guard String(decoding: word, as: UTF8.self).trimmed.isSameField(kind) else { return nil }
    var rest = text.dropFirst(word.count)
    var found: [String: [UInt8]] = [:]
    while rest.popFirst() != nil {
      let name = String(decoding: rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }, as: UTF8.self)
      rest = rest.drop { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
      if rest.first != UInt8(ascii: "=") {
        if name.trimmed.isEmpty { continue }
        throw MultipartError("a parameter of Content-Disposition has no value")
      }
      rest = rest.dropFirst().drop { $0 == 32 || $0 == 9 }
      let value: [UInt8]
      if rest.first == UInt8(ascii: "\"") {
        value = try quoted(&rest)
        let after = rest.prefix { $0 != UInt8(ascii: ";") }
        if !after.allSatisfy({ $0 == 32 || $0 == 9 }) { throw MultipartError("text follows a quoted parameter") }
      } else {
        value = Array(String(decoding: rest.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self).trimmed.utf8)
      }
      rest = rest.drop { $0 != UInt8(ascii: ";") }
      if found.updateValue(value, forKey: name.trimmed.lowercased()) != nil {
        throw MultipartError("a parameter of Content-Disposition stands there twice")
      }
    }
    return found
  }

  /// Parses a quoted value. A backslash is an ordinary byte, because browsers and newer versions of curl do not use it
  /// to escape. It escapes a quote only if that quote cannot end the value, as older versions of curl write it.
  private static func quoted(_ rest: inout ArraySlice<UInt8>) throws(MultipartError) -> [UInt8] {
    var value: [UInt8] = []
    rest.removeFirst()
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return value }
      let isEscape = byte == UInt8(ascii: "\\") && rest.first == UInt8(ascii: "\"") && !endsValue(rest.dropFirst())
      value.append(isEscape ? rest.removeFirst() : byte)
    }
    throw MultipartError("a quoted parameter of Content-Disposition has no end")
  }

  /// Whether `rest` can follow the closing quote of a value.
  private static func endsValue(_ rest: ArraySlice<UInt8>) -> Bool {
    let next = rest.first { $0 != 32 && $0 != 9 }
    return next == nil || next == UInt8(ascii: ";")
  }

  /// Decodes the three escapes that browsers write; they do not even encode the percent sign. WHATWG HTML §4.10.21.8.
  private static func unescaped(_ text: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let coded = PercentCoding.decode([byte] + rest.prefix(2))?.first,
        [0x22, 0x0D, 0x0A].contains(coded)
      {
        bytes.append(coded)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }

  /// The last path component, because some clients send the folder too. RFC 7578 §4.2.
  private static func last(_ path: [UInt8]) -> [UInt8] {
    Array(path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? [])
  }
}

/// Why a form body is refused.
package struct MultipartError: Error, Sendable, CustomStringConvertible {
  package let description: String
  /// The HTTP status for the response.
  package let status: Int

  init(_ description: String) { self.init(400, description) }

  init(_ status: Int, _ description: String) {
    self.status = status
    self.description = description
  }
}

/// The `boundary` parameter of `Content-Type`. RFC 2046 §5.1.1.
package enum MultipartBoundary {
  /// nil if the type is not `multipart/form-data`. Throws if the boundary is missing or invalid.
  package static func find(_ contentType: String?) throws(MultipartError) -> [UInt8]? {
    guard let contentType else { return nil }
    let type = contentType.prefix { $0 != ";" }
    guard type.trimmed.isSameField("multipart/form-data") else { return nil }
    guard let value = ContentDisposition.parameters(contentType)["boundary"] else {
      throw MultipartError("Content-Type has no boundary")
    }
    let bytes = Array(value.utf8)
    let others = Set("'()+_,-./:=? ".utf8)
    let isKnown = bytes.allSatisfy { byte in
      (48...57).contains(byte) || (97...122).contains(byte | 0x20) || others.contains(byte)
    }
    guard (1...70).contains(bytes.count), isKnown, bytes.last != 32 else {
      throw MultipartError("the boundary of Content-Type must be 1 to 70 letters, digits and '()+_,-./:=? ")
    }
    return bytes
  }
}
