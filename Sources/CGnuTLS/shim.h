#pragma once
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
// For a session of libmicrohttpd, whose TLS is this.
// Bytes sent; negative: GnuTLS's error, and a part of them may wait to be sent.
static inline ssize_t fb_tls_send(void *session, const void *bytes, size_t count) {
  return gnutls_record_send((gnutls_session_t)session, bytes, count);
}
// Each returns a negative code of GnuTLS when what it is given, as PEM, is not what it should be.
static inline gnutls_datum_t fb_tls_text(const char *text) {
  gnutls_datum_t datum = {(unsigned char *)text, (unsigned)__builtin_strlen(text)};
  return datum;
}
static inline int fb_tls_check_certificate(const char *text) {
  gnutls_x509_crt_t *found;
  unsigned count;
  gnutls_datum_t datum = fb_tls_text(text);
  int status = gnutls_x509_crt_list_import2(&found, &count, &datum, GNUTLS_X509_FMT_PEM, 0);
  if (status < 0) return status;
  for (unsigned i = 0; i < count; i++) gnutls_x509_crt_deinit(found[i]);
  gnutls_free(found);
  return 0;
}
static inline int fb_tls_check_key(const char *text) {
  gnutls_x509_privkey_t key;
  gnutls_datum_t datum = fb_tls_text(text);
  int status = gnutls_x509_privkey_init(&key);
  if (status < 0) return status;
  status = gnutls_x509_privkey_import2(key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
  gnutls_x509_privkey_deinit(key);
  return status;
}
static inline int fb_tls_check_pair(const char *certificate, const char *key) {
  gnutls_certificate_credentials_t both;
  gnutls_datum_t first = fb_tls_text(certificate), second = fb_tls_text(key);
  int status = gnutls_certificate_allocate_credentials(&both);
  if (status < 0) return status;
  status = gnutls_certificate_set_x509_key_mem(both, &first, &second, GNUTLS_X509_FMT_PEM);
  gnutls_certificate_free_credentials(both);
  return status;
}
