#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
// Macros with arguments.
static inline int fb_bio_source(void) { return BIO_TYPE_SOURCE_SINK; }
static inline void fb_bio_clear_retry(BIO *b) { BIO_clear_retry_flags(b); }
static inline void fb_bio_retry_read(BIO *b) { BIO_set_retry_read(b); }
