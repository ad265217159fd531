import BlobCrypto
import Blobs

/// The opaque names that files and folders get at a destination, so that the server does not learn what they are called.
///
/// A name depends on the key and on the whole path that ends in it: equal names in different folders look different, and
/// every run makes the same ones. Its descriptions do not contain the key.
package struct SealedNames: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  package static let keyCount = 32
  let key: [UInt8]

  /// nil: this is no key.
  package init?(key: [UInt8]) {
    if key.count != Self.keyCount { return nil }
    self.key = key
  }

  package var description: String { "a key of names" }
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// The path at the destination of the file that is called `plain`.
  package func path(of plain: BytePath) -> BytePath {
    var (sealed, whole): ([UInt8], [UInt8]) = ([], [])
    for component in plain.components {
      if !whole.isEmpty {
        whole.append(UInt8(ascii: "/"))
        sealed.append(UInt8(ascii: "/"))
      }
      whole += component.bytes
      sealed += Self.letters(of: HMAC.sha256(whole, key: key))
    }
    return BytePath(sealed + Sealing.ending.bytes)
  }

  // Case does not matter in these letters. RFC 4648 §6.
  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
  /// With 130 bits, no two paths get one name.
  private static let count = 26

  private static func letters(of bytes: [UInt8]) -> [UInt8] {
    (0..<count).map { index in
      let (byte, shift) = (index * 5 / 8, index * 5 % 8)
      let pair = UInt16(bytes[byte]) << 8 | UInt16(bytes[byte + 1])
      return alphabet[Int(pair >> (11 - shift)) & 31]
    }
  }

  private static func isOpaque(_ name: some Collection<UInt8>) -> Bool {
    name.count == count && name.allSatisfy(alphabet.contains)
  }

  /// Whether a file at the destination has an opaque name.
  package static func isOpaque(_ name: BytePath) -> Bool {
    Sealing.isName(name.bytes) && isOpaque(name.bytes.dropLast(Sealing.ending.bytes.count))
  }
}

// Indexes have names that tell nothing but that they are indexes.
extension SealedNames {
  private static let beginning = Array("fullbore-index-".utf8)

  /// A name that no other index has.
  static func newIndexName() -> BytePath {
    BytePath(beginning + letters(of: FileSeal.newBoxKey()) + Sealing.ending.bytes)
  }

  /// Whether a file at the destination is an index of opaque names.
  package static func isIndex(_ name: BytePath) -> Bool {
    name.bytes.starts(with: beginning) && isOpaque(BytePath(name.bytes.dropFirst(beginning.count)))
  }
}
