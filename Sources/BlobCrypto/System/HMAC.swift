#if canImport(CryptoKit)
  import CryptoKit
#endif

/// HMAC-SHA-256 of bytes in memory. RFC 2104.
package enum HMAC {
  package static func sha256(_ message: some Sequence<UInt8>, key: [UInt8]) -> [UInt8] {
    #if canImport(CryptoKit)
      Array(CryptoKit.HMAC<SHA256>.authenticationCode(for: Array(message), using: SymmetricKey(data: key)))
    #else
      // Two digests take half as long as a context of libcrypto's HMAC.
      let key = key.count > blockCount ? SystemDigest.value(of: key, .sha256) : key
      func padded(_ byte: UInt8) -> [UInt8] {
        key.map { $0 ^ byte } + [UInt8](repeating: byte, count: blockCount - key.count)
      }
      let inner = SystemDigest.value(of: padded(0x36) + message, .sha256)
      return SystemDigest.value(of: padded(0x5c) + inner, .sha256)
    #endif
  }

  /// Bytes of a block of SHA-256.
  private static let blockCount = 64
}
