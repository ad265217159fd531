/// Base64 with the standard alphabet. RFC 4648 §4.
package enum Base64 {
  /// The encoded text ends with padding.
  package static func encode(_ bytes: some Collection<UInt8>) -> String {
    // The digits are made from an array, since the compiler does not specialise a loop over any collection.
    let bytes = Array(bytes)
    return String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
      var end = 0
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let count = min(3, bytes.count - start)
        var bits = UInt32(0)
        for place in 0..<3 { bits = bits << 8 | (place < count ? UInt32(bytes[start + place]) : 0) }
        for place in 0..<4 {
          text[end] = place <= count ? digits[Int(bits >> (18 - 6 * UInt32(place)) & 63)] : UInt8(ascii: "=")
          end += 1
        }
      }
      return end
    }
  }

  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Returns nil if `text` is not base64. The padding may be missing.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var digits = Array(text.utf8)
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    if digits.count % 4 == 1 || text.utf8.count - digits.count > 2 { return nil }
    var bytes: [UInt8] = []
    var held: UInt32 = 0
    var bits = 0
    for digit in digits {
      guard let value = value(digit) else { return nil }
      held = held << 6 | value
      bits += 6
      if bits < 8 { continue }
      bits -= 8
      bytes.append(UInt8(truncatingIfNeeded: held >> bits))
    }
    return bytes
  }

  private static func value(_ digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - 65)
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - 71)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit + 4)
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
