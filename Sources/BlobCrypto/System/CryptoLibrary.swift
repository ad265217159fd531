#if !canImport(CryptoKit)
  import CCrypto
#endif

/// Keeps libcrypto from freeing its memory in `exit`. A program calls it before anything else.
///
/// At exit libcrypto would free what threads still use that are just closing a TLS connection, and the program would die of
/// a double free after its work was done. Apple's libraries need no such call.
package func keepCryptoToTheEnd() {
  #if !canImport(CryptoKit)
    // It can fail only when memory has run out, and then the next call fails as well.
    _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  #endif
}
