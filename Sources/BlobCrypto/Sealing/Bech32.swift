/// The text form of age's keys: a readable prefix, five bits a character, and a checksum. BIP 173, without its limit of
/// length.
enum Bech32 {
  private static let digits = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)

  /// In lower case.
  static func encode(_ prefix: String, _ bytes: [UInt8]) -> String {
    let values = regrouped(bytes, from: 8, to: 5, pads: true) ?? []
    let remainder = checksum(expanded(prefix) + values + [UInt8](repeating: 0, count: 6)) ^ 1
    let check = (0..<6).map { UInt8(truncatingIfNeeded: remainder >> (5 * (5 - UInt32($0))) & 31) }
    return prefix + "1" + String(decoding: (values + check).map { digits[Int($0)] }, as: UTF8.self)
  }

  /// The prefix is returned in lower case. nil: this is no such text, or a character in it is wrong.
  static func decode(_ text: String) -> (prefix: String, bytes: [UInt8])? {
    if text != text.lowercased() && text != text.uppercased() { return nil }
    let text = Array(text.lowercased().utf8)
    guard let mark = text.lastIndex(of: UInt8(ascii: "1")), mark > 0, text.count - mark > 6,
      text.allSatisfy({ 33...126 ~= $0 })
    else { return nil }
    let prefix = String(decoding: text[..<mark], as: UTF8.self)
    var values: [UInt8] = []
    for digit in text[(mark + 1)...] {
      guard let value = digits.firstIndex(of: digit) else { return nil }
      values.append(UInt8(value))
    }
    guard checksum(expanded(prefix) + values) == 1 else { return nil }
    return regrouped(values.dropLast(6), from: 5, to: 8, pads: false).map { (prefix, $0) }
  }

  private static func expanded(_ prefix: String) -> [UInt8] {
    prefix.utf8.map { $0 >> 5 } + [0] + prefix.utf8.map { $0 & 31 }
  }

  private static func checksum(_ values: [UInt8]) -> UInt32 {
    let factors: [UInt32] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3]
    return values.reduce(UInt32(1)) { sum, value in
      let top = sum >> 25
      let next = (sum & 0x1ff_ffff) << 5 ^ UInt32(value)
      return factors.indices.reduce(next) { top >> UInt32($1) & 1 == 1 ? $0 ^ factors[$1] : $0 }
    }
  }

  /// nil: without padding, bits are left that are no padding.
  private static func regrouped(
    _ values: some Sequence<UInt8>, from: UInt32, to: UInt32, pads: Bool
  ) -> [UInt8]? {
    var (held, bits): (UInt32, UInt32) = (0, 0)
    var result: [UInt8] = []
    for value in values {
      held = (held << from | UInt32(value)) & 0xfff
      bits += from
      while bits >= to {
        bits -= to
        result.append(UInt8(truncatingIfNeeded: held >> bits & (1 << to - 1)))
      }
    }
    let rest = held & (1 << bits - 1)
    if pads {
      if bits > 0 { result.append(UInt8(truncatingIfNeeded: rest << (to - bits))) }
    } else if bits >= from || rest != 0 {
      return nil
    }
    return result
  }
}
