import CCrypto

/// A checksum under a key of its own, at a sixth of what SHA-256 costs with hardware for it. RFC 8439 §2.5.
///
/// It tells two contents apart that were made without knowing the key: 2^40 bytes that differ have the same value with
/// a chance below 2^-65. So key and value are kept where whoever makes the contents does not read them. Belongs to one
/// thread at a time.
package final class Poly1305 {
  package static let keyCount = 32
  package static let valueCount = 16

  private let context: OpaquePointer

  /// `key` has `keyCount` bytes.
  package init(key: [UInt8]) {
    precondition(key.count == Self.keyCount)
    let method = EVP_MAC_fetch(nil, "POLY1305", nil)
    context = EVP_MAC_CTX_new(method)!  // nil only when memory has run out, or without OpenSSL's default provider
    EVP_MAC_free(method)
    let status = EVP_MAC_init(context, key, key.count, nil)
    precondition(status == 1, "libcrypto: POLY1305 takes no key")
  }

  /// One that nobody can guess.
  package static func newKey() -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<keyCount).map { _ in .random(in: 0...255, using: &random) }
  }

  deinit { EVP_MAC_CTX_free(context) }

  /// Takes the next bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    let status = EVP_MAC_update(context, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
    precondition(status == 1, "libcrypto: POLY1305 takes no more bytes")
  }

  /// The checksum of all bytes so far. More may follow.
  package func value() -> [UInt8] {
    let copy = EVP_MAC_CTX_dup(context)
    defer { EVP_MAC_CTX_free(copy) }
    return [UInt8](unsafeUninitializedCapacity: Self.valueCount) { buffer, written in
      let status = EVP_MAC_final(copy, buffer.baseAddress, &written, Self.valueCount)
      precondition(status == 1, "libcrypto: POLY1305 gives no value")
    }
  }
}
