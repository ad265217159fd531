/// Base64 with the standard alphabet. RFC 4648 §4.
package enum Base64 {
  /// The encoded text ends with padding, unless `isPadded` is false.
  package static func encode(_ bytes: some Collection<UInt8>, isPadded: Bool = true) -> String {
    // The digits are made from a buffer, since the compiler does not specialise a loop over any collection.
    bytes.withContiguousStorageIfAvailable { encode($0, isPadded) }
      ?? Array(bytes).withUnsafeBufferPointer { encode($0, isPadded) }
  }

  private static func encode(_ bytes: UnsafeBufferPointer<UInt8>, _ isPadded: Bool) -> String {
    String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
      let digits = digits.utf8Start
      var end = 0
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let count = min(3, bytes.count - start)
        var bits = Int(bytes[start]) << 16
        if count > 1 { bits |= Int(bytes[start + 1]) << 8 }
        if count > 2 { bits |= Int(bytes[start + 2]) }
        text[end] = digits[bits >> 18]
        text[end + 1] = digits[bits >> 12 & 63]
        text[end + 2] = count > 1 ? digits[bits >> 6 & 63] : UInt8(ascii: "=")
        text[end + 3] = count > 2 ? digits[bits & 63] : UInt8(ascii: "=")
        end += isPadded ? 4 : count + 1
      }
      return end
    }
  }

  private static let digits: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

  /// Returns nil if `text` is not base64. The padding may be missing.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var digits = Array(text.utf8)
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    if digits.count % 4 == 1 || text.utf8.count - digits.count > 2 { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 4 * 3 + 2)
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
