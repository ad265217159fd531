#pragma once
#include <curl/curl.h>
// Every setopt and getinfo is variadic, which Swift does not import: one wrapper for each type of argument.
typedef size_t (*fb_curl_io)(char *buffer, size_t size, size_t count, void *context);
typedef int (*fb_curl_seek)(void *context, curl_off_t offset, int origin);
typedef int (*fb_curl_prereq)(void *context, char *remote, char *local, int remote_port, int local_port);
typedef int (*fb_curl_closesocket)(void *context, curl_socket_t socket);
typedef int (*fb_curl_trailers)(struct curl_slist **list, void *context);
typedef curl_socket_t (*fb_curl_opensocket)(void *context, curlsocktype purpose, struct curl_sockaddr *address);

static inline CURLcode fb_curl_set_long(CURL *e, CURLoption o, long v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_offset(CURL *e, CURLoption o, curl_off_t v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_string(CURL *e, CURLoption o, const char *v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_pointer(CURL *e, CURLoption o, void *v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_io(CURL *e, CURLoption o, fb_curl_io v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_seek(CURL *e, fb_curl_seek v) { return curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, v); }
static inline CURLcode fb_curl_set_trailers(CURL *e, fb_curl_trailers v) { return curl_easy_setopt(e, CURLOPT_TRAILERFUNCTION, v); }
static inline CURLcode fb_curl_set_opensocket(CURL *e, fb_curl_opensocket v) { return curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, v); }
static inline CURLcode fb_curl_set_prereq(CURL *e, fb_curl_prereq v) { return curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, v); }
static inline CURLcode fb_curl_set_closesocket(CURL *e, fb_curl_closesocket v) { return curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, v); }
static inline CURLcode fb_curl_get_long(CURL *e, CURLINFO i, long *v) { return curl_easy_getinfo(e, i, v); }
static inline CURLcode fb_curl_get_offset(CURL *e, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(e, i, v); }
static inline CURLcode fb_curl_get_string(CURL *e, CURLINFO i, const char **v) { return curl_easy_getinfo(e, i, (char **)v); }
static inline void *fb_curl_get_tls(CURL *e) { struct curl_tlssessioninfo *t = 0; return curl_easy_getinfo(e, CURLINFO_TLS_SSL_PTR, &t) == CURLE_OK && t && t->backend == CURLSSLBACKEND_OPENSSL ? t->internals : 0; }
static inline const char *fb_curl_tls_version(void) { return curl_version_info(CURLVERSION_NOW)->ssl_version; }
static inline CURLMcode fb_curlm_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLcode fb_curl_message_result(const CURLMsg *m) { return m->data.result; }
// Macros with casts and arithmetic.
static inline size_t fb_curl_read_pause(void) { return CURL_READFUNC_PAUSE; }
static inline size_t fb_curl_read_abort(void) { return CURL_READFUNC_ABORT; }
static inline long fb_curl_http_1_1(void) { return CURL_HTTP_VERSION_1_1; }
static inline long fb_curl_global_all(void) { return CURL_GLOBAL_ALL; }
