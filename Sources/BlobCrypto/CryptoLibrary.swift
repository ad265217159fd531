import CCrypto

/// Keeps libcrypto whole to the end of the process. Call it first of all.
///
/// By itself it frees what it holds in `exit`, under the hands of threads that are just closing a TLS connection: now and
/// then a program that had done its work died of a double free.
package func keepCryptoToTheEnd() {
  // It can fail only when memory has run out, and then whatever comes next says so.
  _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}
