import Blobs

/// A caller's secret, from which the keys that meet bytes are derived. It is never printed.
public struct EncryptionKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  private let bytes: [UInt8]

  /// At least 32 bytes, which must be random: the output of a generator or of a password hash, not a password.
  /// Fewer throw `.unsupported`.
  public init(_ bytes: [UInt8]) throws(BlobError) {
    if bytes.count < 32 {
      throw BlobError(.unsupported, "an encryption key of \(bytes.count) bytes: at least 32 are wanted")
    }
    self.bytes = bytes
  }

  public var description: String { "an encryption key" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }

  /// `count` bytes that nobody without the key can guess, others for each `purpose` and each list of `parts`:
  /// HKDF with SHA-256 (RFC 5869), without salt.
  func derive(_ count: Int, _ purpose: String, _ parts: [String]) -> [UInt8] {
    // The count in front of each keeps "a", "bc" apart from "ab", "c".
    let info = ([purpose] + parts).flatMap { Array("\($0.utf8.count):\($0)".utf8) }
    return hkdf(bytes, info: info, count: count)
  }
}

/// RFC 5869 with SHA-256; at most 8,160 bytes.
package func hkdf(_ key: [UInt8], salt: [UInt8] = [], info: [UInt8], count: Int) -> [UInt8] {
  precondition(count <= 255 * 32)
  let extracted = HMAC.sha256(key, key: salt.isEmpty ? [UInt8](repeating: 0, count: 32) : salt)
  var block: [UInt8] = []
  var bytes: [UInt8] = []
  var number: UInt8 = 1
  while bytes.count < count {
    block = HMAC.sha256(block + info + [number], key: extracted)
    bytes += block
    number &+= 1
  }
  return Array(bytes.prefix(count))
}
