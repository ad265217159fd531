#if canImport(CryptoKit)
  import CryptoKit
#else
  import CCrypto
#endif

/// Diffie-Hellman on Curve25519. RFC 7748 §5.
enum X25519 {
  static let keyCount = 32

  /// The public key of a private one, of `keyCount` bytes.
  static func publicKey(of privateKey: [UInt8]) -> [UInt8] {
    precondition(privateKey.count == keyCount)
    #if canImport(CryptoKit)
      guard let key = try? Curve25519.KeyAgreement.PrivateKey(rawRepresentation: privateKey) else {
        preconditionFailure("CryptoKit has no X25519 here")
      }
      return Array(key.publicKey.rawRepresentation)
    #else
      guard let key = EVP_PKEY_new_raw_private_key(NID_X25519, nil, privateKey, keyCount) else {
        preconditionFailure("libcrypto has no X25519 here")
      }
      defer { EVP_PKEY_free(key) }
      return [UInt8](unsafeUninitializedCapacity: keyCount) { buffer, written in
        written = keyCount
        let status = EVP_PKEY_get_raw_public_key(key, buffer.baseAddress, &written)
        precondition(status == 1 && written == keyCount, "libcrypto: X25519 gives no public key")
      }
    #endif
  }

  /// nil: the public key is one of the few with which every private key gives zero.
  static func shared(_ privateKey: [UInt8], with publicKey: [UInt8]) -> [UInt8]? {
    precondition(privateKey.count == keyCount && publicKey.count == keyCount)
    #if canImport(CryptoKit)
      guard let key = try? Curve25519.KeyAgreement.PrivateKey(rawRepresentation: privateKey),
        let other = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey),
        let secret = try? key.sharedSecretFromKeyAgreement(with: other).withUnsafeBytes({ Array($0) })
      else { return nil }
      return secret.allSatisfy { $0 == 0 } ? nil : secret
    #else
      guard let key = EVP_PKEY_new_raw_private_key(NID_X25519, nil, privateKey, keyCount) else { return nil }
      defer { EVP_PKEY_free(key) }
      guard let other = EVP_PKEY_new_raw_public_key(NID_X25519, nil, publicKey, keyCount) else { return nil }
      defer { EVP_PKEY_free(other) }
      guard let context = EVP_PKEY_CTX_new(key, nil) else { return nil }
      defer { EVP_PKEY_CTX_free(context) }
      var secret = [UInt8](repeating: 0, count: keyCount)
      var count = keyCount
      let isDone =
        EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, other) == 1
        && EVP_PKEY_derive(context, &secret, &count) == 1 && count == keyCount
      return isDone && !secret.allSatisfy { $0 == 0 } ? secret : nil
    #endif
  }
}
