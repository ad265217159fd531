#if canImport(CryptoKit)
  import CryptoKit
#else
  import CCrypto
#endif

/// HMAC-SHA-256 of bytes in memory. RFC 2104.
package enum HMAC {
  package static func sha256(_ message: some Sequence<UInt8>, key: [UInt8]) -> [UInt8] {
    #if canImport(CryptoKit)
      Array(CryptoKit.HMAC<SHA256>.authenticationCode(for: Array(message), using: SymmetricKey(data: key)))
    #else
      let message = Array(message)
      let context = EVP_MAC_CTX_dup(unkeyed)
      defer { EVP_MAC_CTX_free(context) }
      return [UInt8](unsafeUninitializedCapacity: 32) { buffer, written in
        let isDone =
          EVP_MAC_init(context, key, key.count, nil) == 1 && EVP_MAC_update(context, message, message.count) == 1
          && EVP_MAC_final(context, buffer.baseAddress, &written, buffer.count) == 1
        precondition(isDone && written == 32, "libcrypto has no HMAC-SHA-256 here")
      }
    #endif
  }
}

#if !canImport(CryptoKit)
  /// A context without a key, which each computation copies, because fetching the method takes longer than a short text
  /// takes to digest. Nothing in it changes.
  private nonisolated(unsafe) let unkeyed: OpaquePointer? = {
    let method = EVP_MAC_fetch(nil, "HMAC", nil)
    defer { EVP_MAC_free(method) }
    guard let context = EVP_MAC_CTX_new(method) else { return nil }
    var digest = Array("SHA256".utf8CString)
    // A parameter refers to its name and its value.
    let isSet = "digest".withCString { name in
      digest.withUnsafeMutableBufferPointer { digest in
        let parameters = [OSSL_PARAM_construct_utf8_string(name, digest.baseAddress, 0), OSSL_PARAM_construct_end()]
        return EVP_MAC_CTX_set_params(context, parameters) == 1
      }
    }
    return isSet ? context : nil
  }()
#endif
