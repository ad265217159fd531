#pragma once
#include <curl/curl.h>
// Every setopt and getinfo is variadic, which Swift does not import: one wrapper for each type of argument.
typedef int (*fb_curl_closesocket)(void *context, curl_socket_t socket);
typedef int (*fb_curl_xferinfo)(void *context, curl_off_t total, curl_off_t now, curl_off_t total_up, curl_off_t now_up);
typedef curl_socket_t (*fb_curl_opensocket)(void *context, curlsocktype purpose, struct curl_sockaddr *address);

static inline CURLcode fb_curl_set_long(CURL *e, CURLoption o, long v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_string(CURL *e, CURLoption o, const char *v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_pointer(CURL *e, CURLoption o, void *v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode fb_curl_set_opensocket(CURL *e, fb_curl_opensocket v) { return curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, v); }
static inline CURLcode fb_curl_set_closesocket(CURL *e, fb_curl_closesocket v) { return curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, v); }
static inline CURLcode fb_curl_set_xferinfo(CURL *e, fb_curl_xferinfo v) { return curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, v); }
static inline CURLcode fb_curl_get_long(CURL *e, CURLINFO i, long *v) { return curl_easy_getinfo(e, i, v); }
static inline CURLcode fb_curl_get_socket(CURL *e, CURLINFO i, curl_socket_t *v) { return curl_easy_getinfo(e, i, v); }
static inline CURLcode fb_curl_get_string(CURL *e, CURLINFO i, const char **v) { return curl_easy_getinfo(e, i, (char **)v); }
static inline CURLcode fb_curl_message_result(const CURLMsg *m) { return m->data.result; }
// Macros with casts and arithmetic.
static inline long fb_curl_http_1_1(void) { return CURL_HTTP_VERSION_1_1; }
static inline long fb_curl_global_all(void) { return CURL_GLOBAL_ALL; }
static inline CURLversion fb_curl_version_now(void) { return CURLVERSION_NOW; }
