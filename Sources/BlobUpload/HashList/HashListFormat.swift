import BlobCrypto
import Blobs

/// A hash of ASC MHL, in the order in which the schema has them.
package enum HashListFormat: String, CaseIterable, Sendable {
  case c4, md5, sha1, xxh128, xxh3, xxh64

  /// The hash of lists that is written when none is chosen: xxh128, where xxHash is known.
  package static let usual = Digest.Algorithm("xxh128") == nil ? HashListFormat.md5 : .xxh128

  /// The formats that can be computed here.
  package static var known: [HashListFormat] { allCases.filter { Digest.Algorithm($0.algorithm.name) != nil } }

  /// The algorithm of the digest that the text stands for.
  package var algorithm: Digest.Algorithm {
    switch self {
    case .c4: .sha512
    case .md5: .md5
    case .sha1: .sha1
    case .xxh128: .xxh128
    case .xxh3: .xxh3
    case .xxh64: .xxh64
    }
  }

  /// The text of a digest in a list.
  package func text(_ digest: [UInt8]) -> String { self == .c4 ? C4.text(digest) : Digest.hex(digest) }

  /// The digest that a text stands for; nil: it is none of this format.
  package func digest(_ text: String) -> [UInt8]? {
    if self == .c4 { return C4.digest(text) }
    let digits = Array(text.utf8)
    guard digits.count == 2 * algorithm.size else { return nil }
    let values = digits.map { Character(Unicode.Scalar($0)).hexDigitValue }
    if values.contains(nil) { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8((values[$0] ?? 0) << 4 | (values[$0 + 1] ?? 0)) }
  }
}

/// The text form of a SHA-512: `c4`, and the number in base 58 with 88 digits. SMPTE ST 2114.
private enum C4 {
  private static let alphabet = Array("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)
  private static let digits = 88

  static func text(_ digest: [UInt8]) -> String {
    var number = digest
    var text: [UInt8] = []
    for _ in 0..<digits {
      var rest = 0
      for index in number.indices {
        let value = rest << 8 | Int(number[index])
        number[index] = UInt8(value / 58)
        rest = value % 58
      }
      text.append(alphabet[rest])
    }
    return "c4" + String(decoding: text.reversed(), as: UTF8.self)
  }

  static func digest(_ text: String) -> [UInt8]? {
    guard text.hasPrefix("c4"), text.utf8.count == digits + 2 else { return nil }
    var number = [UInt8](repeating: 0, count: 64)
    for letter in text.utf8.dropFirst(2) {
      guard var carry = alphabet.firstIndex(of: letter) else { return nil }
      for index in number.indices.reversed() {
        carry += Int(number[index]) * 58
        number[index] = UInt8(carry & 0xFF)
        carry >>= 8
      }
      // The number has more than 512 bits.
      if carry != 0 { return nil }
    }
    return number
  }
}
