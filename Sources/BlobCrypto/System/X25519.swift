#if canImport(CryptoKit)
  import CryptoKit
#else
  import CCrypto
#endif

/// A private key for Diffie-Hellman on Curve25519. RFC 7748 §5.
final class X25519 {
  static let keyCount = 32

  /// The public key, of `keyCount` bytes.
  let publicKey: [UInt8]

  #if canImport(CryptoKit)
    private let key: Curve25519.KeyAgreement.PrivateKey

    /// Any `keyCount` bytes are a private key.
    init(_ bytes: [UInt8]) {
      precondition(bytes.count == Self.keyCount)
      guard let key = try? Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes) else {
        preconditionFailure("CryptoKit has no X25519 here")
      }
      (self.key, publicKey) = (key, Array(key.publicKey.rawRepresentation))
    }

    /// nil: the public key is one of the few with which every private key gives zero.
    func shared(with publicKey: PublicKey) -> [UInt8]? {
      guard let other = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey.bytes),
        let secret = try? key.sharedSecretFromKeyAgreement(with: other).withUnsafeBytes({ Array($0) })
      else { return nil }
      return secret.allSatisfy { $0 == 0 } ? nil : secret
    }
  #else
    private let key: OpaquePointer

    /// Any `keyCount` bytes are a private key.
    init(_ bytes: [UInt8]) {
      precondition(bytes.count == Self.keyCount)
      // libcrypto computes the public key here.
      guard let key = EVP_PKEY_new_raw_private_key(NID_X25519, nil, bytes, Self.keyCount) else {
        preconditionFailure("libcrypto has no X25519 here")
      }
      self.key = key
      publicKey = [UInt8](unsafeUninitializedCapacity: Self.keyCount) { buffer, written in
        written = Self.keyCount
        let status = EVP_PKEY_get_raw_public_key(key, buffer.baseAddress, &written)
        precondition(status == 1 && written == Self.keyCount, "libcrypto: X25519 gives no public key")
      }
    }

    deinit { EVP_PKEY_free(key) }

    /// nil: the public key is one of the few with which every private key gives zero.
    func shared(with publicKey: PublicKey) -> [UInt8]? {
      guard let other = publicKey.key, let context = EVP_PKEY_CTX_new(key, nil) else { return nil }
      defer { EVP_PKEY_CTX_free(context) }
      var secret = [UInt8](repeating: 0, count: Self.keyCount)
      var count = Self.keyCount
      // Any bytes are a public key, so that there is nothing to validate.
      let isDone =
        EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer_ex(context, other, 0) == 1
        && EVP_PKEY_derive(context, &secret, &count) == 1 && count == Self.keyCount
      return isDone && !secret.allSatisfy { $0 == 0 } ? secret : nil
    }
  #endif
}

extension X25519 {
  /// The public key of the other side. It is kept while many files are sealed for it: to libcrypto, making one takes a
  /// third of the time of its use.
  final class PublicKey: Sendable, Hashable {
    let bytes: [UInt8]
    #if !canImport(CryptoKit)
      /// nil only when memory has run out. Nothing in it changes but its count of references, which is atomic.
      fileprivate nonisolated(unsafe) let key: OpaquePointer?
    #endif

    /// Any `keyCount` bytes are a public key.
    init(_ bytes: [UInt8]) {
      precondition(bytes.count == X25519.keyCount)
      self.bytes = bytes
      #if !canImport(CryptoKit)
        key = EVP_PKEY_new_raw_public_key(NID_X25519, nil, bytes, bytes.count)
      #endif
    }

    #if !canImport(CryptoKit)
      deinit { EVP_PKEY_free(key) }
    #endif

    static func == (a: PublicKey, b: PublicKey) -> Bool { a.bytes == b.bytes }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
  }
}
