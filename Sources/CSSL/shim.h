#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
// Macros with arguments.
static inline int fb_bio_source(void) { return BIO_TYPE_SOURCE_SINK; }
static inline void fb_bio_clear_retry(BIO *b) { BIO_clear_retry_flags(b); }
static inline void fb_bio_retry_read(BIO *b) { BIO_set_retry_read(b); }
// Both lists are in the order of preference. AEAD, keys of one use (ECDHE), no SHA-1, no renegotiation.
static inline int fb_ssl_be_server(SSL_CTX *c) {
  // A client that ends its half of the connection without TLS's goodbye still waits for its answer. HTTP tells by itself
  // whether a request is whole.
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                             SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_default_read_buffer_len(c, 64 << 10);  // one call takes some records from the socket
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  return SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(c, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
         SSL_CTX_set1_sigalgs_list(c, "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519:ed448:RSA-PSS+SHA256:"
                                      "RSA-PSS+SHA384:RSA-PSS+SHA512:rsa_pss_pss_sha256:rsa_pss_pss_sha384:"
                                      "rsa_pss_pss_sha512:RSA+SHA256:RSA+SHA384:RSA+SHA512") == 1;
}
// Takes a reference of its own.
static inline int fb_ssl_add_to_chain(SSL_CTX *c, X509 *x) { return (int)SSL_CTX_add1_chain_cert(c, x); }
