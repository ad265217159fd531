#if canImport(CryptoKit)
  import CryptoKit
#else
  import CCrypto
#endif

/// A checksum under a secret key, which tells apart two contents that were made without knowing the key. Key and value
/// must be kept where whoever makes the contents does not read them.
///
/// On Linux it is Poly1305 (RFC 8439 §2.5), at a sixth of what SHA-256 costs: contents of 2^40 bytes that differ have the
/// same value with a chance below 2^-65. On Apple's systems, which offer no Poly1305 by itself, it is HMAC-SHA-256 (RFC
/// 2104), cut to the same length. Values are compared only with values from the same machine. It belongs to one thread at
/// a time.
package final class KeyedChecksum {
  package static let keyCount = 32
  package static let valueCount = 16

  #if canImport(CryptoKit)
    private var code: CryptoKit.HMAC<SHA256>
  #else
    private let context: OpaquePointer
  #endif

  /// `key` has `keyCount` bytes.
  package init(key: [UInt8]) {
    precondition(key.count == Self.keyCount)
    #if canImport(CryptoKit)
      code = CryptoKit.HMAC(key: SymmetricKey(data: key))
    #else
      let method = EVP_MAC_fetch(nil, "POLY1305", nil)
      context = EVP_MAC_CTX_new(method)!  // nil only when memory has run out, or without OpenSSL's default provider
      EVP_MAC_free(method)
      let status = EVP_MAC_init(context, key, key.count, nil)
      precondition(status == 1, "libcrypto: POLY1305 takes no key")
    #endif
  }

  /// A key that nobody can guess.
  package static func newKey() -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<keyCount).map { _ in .random(in: 0...255, using: &random) }
  }

  #if !canImport(CryptoKit)
    deinit { EVP_MAC_CTX_free(context) }
  #endif

  /// Adds the next bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    #if canImport(CryptoKit)
      code.update(data: bytes)
    #else
      let status = EVP_MAC_update(context, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
      precondition(status == 1, "libcrypto: POLY1305 takes no more bytes")
    #endif
  }

  /// The checksum of all bytes so far. More may follow.
  package func value() -> [UInt8] {
    #if canImport(CryptoKit)
      return Array(code.finalize().prefix(Self.valueCount))
    #else
      let copy = EVP_MAC_CTX_dup(context)
      defer { EVP_MAC_CTX_free(copy) }
      return [UInt8](unsafeUninitializedCapacity: Self.valueCount) { buffer, written in
        let status = EVP_MAC_final(copy, buffer.baseAddress, &written, Self.valueCount)
        precondition(status == 1, "libcrypto: POLY1305 gives no value")
      }
    #endif
  }
}
