/// Encodes and decodes percent-encoded bytes. RFC 3986 §2.1.
package enum PercentCoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// nil if a percent sign is not followed by two hexadecimal digits.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.makeIterator()
    while let byte = rest.next() {
      if byte != UInt8(ascii: "%") {
        bytes.append(byte)
        continue
      }
      guard let high = rest.next()?.hexValue, let low = rest.next()?.hexValue else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  /// Text in which bytes are written as `normalized` writes them.
  static func isNormal(_ text: some Sequence<UInt8>) -> Bool {
    !text.contains(UInt8(ascii: "%")) || normalized(text).utf8.elementsEqual(text)
  }

  /// Unreserved bytes are decoded, and of all other encoded bytes the digits become capital letters. What is not valid
  /// percent-encoding stays as it is. RFC 3986 §6.2.2.
  static func normalized(_ text: some Sequence<UInt8>) -> String {
    var rest = Array(text)[...]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(rest.count)
    while let byte = rest.popFirst() {
      let code = byte == UInt8(ascii: "%") ? rest.prefix(2).compactMap(\.hexValue) : []
      guard code.count == 2 else {
        bytes.append(byte)
        continue
      }
      rest.removeFirst(2)
      let decoded = code[0] << 4 | code[1]
      bytes += decoded.isUnreserved ? [decoded] : [byte, digits[Int(code[0])], digits[Int(code[1])]]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Encodes text for a header field: everything except visible ASCII and the space, and also the percent sign.
  package static func field(_ text: String) -> String {
    let bytes = text.utf8.flatMap { byte -> [UInt8] in
      let isPlain = 0x20...0x7E ~= byte && byte != UInt8(ascii: "%")
      return isPlain ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The decoded bytes, or `text` unchanged if it is not valid percent-encoding.
  package static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
    let text = Array(text)
    return decode(text) ?? text
  }
}

extension UInt8 {
  /// The value of a hexadecimal digit; nil for anything else.
  package var hexValue: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
