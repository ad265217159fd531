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
  let extracted = hmac(key: salt.isEmpty ? [UInt8](repeating: 0, count: 32) : salt, key)
  var block: [UInt8] = []
  var bytes: [UInt8] = []
  var number: UInt8 = 1
  while bytes.count < count {
    block = hmac(key: extracted, block + info + [number])
    bytes += block
    number &+= 1
  }
  return Array(bytes.prefix(count))
}

/// HMAC-SHA256 (RFC 2104).
private func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
  let block = 64
  var padded = key.count > block ? Digest.value(of: key, .sha256) : key
  padded += [UInt8](repeating: 0, count: block - padded.count)
  let inner = Digest.value(of: padded.map { $0 ^ 0x36 } + message, .sha256)
  return Digest.value(of: padded.map { $0 ^ 0x5C } + inner, .sha256)
}
