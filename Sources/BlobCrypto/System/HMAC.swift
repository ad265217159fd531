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
      var text: [UInt8] = []
      text.reserveCapacity(2 * blockCount + message.underestimatedCount)
      func pad(with byte: UInt8) {
        text.removeAll(keepingCapacity: true)
        for keyByte in key { text.append(keyByte ^ byte) }
        text.append(contentsOf: repeatElement(byte, count: blockCount - key.count))
      }
      pad(with: 0x36)
      text.append(contentsOf: message)
      let inner = SystemDigest.value(of: text, .sha256)
      pad(with: 0x5c)
      text += inner
      return SystemDigest.value(of: text, .sha256)
    #endif
  }

  /// Bytes of a block of SHA-256.
  private static let blockCount = 64
}
