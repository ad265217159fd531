import Blobs

/// A caller's secret, from which the actual encryption keys are derived. Its descriptions do not contain it.
public struct EncryptionKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  private let bytes: [UInt8]

  /// Requires at least 32 random bytes: the output of a generator or of a password hash, not a password. Throws
  /// `.unsupported` for fewer bytes.
  public init(_ bytes: [UInt8]) throws(BlobError) {
    if bytes.count < 32 {
      throw BlobError(.unsupported, "an encryption key of \(bytes.count) bytes: at least 32 are wanted")
    }
    self.bytes = bytes
  }

  public var description: String { "an encryption key" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }

  /// Derives `count` bytes that cannot be guessed without the key and that differ for each `purpose` and list of
  /// `parts`: HKDF with SHA-256 (RFC 5869), without salt.
  func derive(_ count: Int, _ purpose: String, _ parts: [String]) -> [UInt8] {
    // The byte count in front of each part distinguishes "a", "bc" from "ab", "c".
    let info = ([purpose] + parts).flatMap { Array("\($0.utf8.count):\($0)".utf8) }
    return hkdf(bytes, info: info, count: count)
  }
}

/// HKDF with SHA-256 (RFC 5869); `count` is at most 8,160 bytes.
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
