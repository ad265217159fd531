#pragma once
// libpq, looked for when a database is asked for: most machines that run the program have none. What is declared here is
// part of the interface that libpq.so.5 has kept since PostgreSQL 8.0. Its objects are opaque.
#include <dlfcn.h>
#include <stddef.h>

typedef struct cpostgres_connection cpostgres_connection;
typedef struct cpostgres_result cpostgres_result;

/// PGnotify of libpq-fe.h.
typedef struct cpostgres_notification {
  char *_Nonnull channel;
  int process;
  char *_Nonnull text;
  struct cpostgres_notification *_Nullable next;
} cpostgres_notification;

/// ConnStatusType and ExecStatusType of libpq-fe.h.
enum { CPOSTGRES_CONNECTED = 0, CPOSTGRES_COMMAND_OK = 1, CPOSTGRES_TUPLES_OK = 2 };
/// PG_DIAG_SQLSTATE of postgres_ext.h.
enum { CPOSTGRES_SQLSTATE = 'C' };

/// PQnoticeProcessor of libpq-fe.h.
typedef void (*cpostgres_notice_processor)(void *, const char *);

typedef struct {
  void *(*conninfo_parse)(const char *, char **);
  void (*conninfo_free)(void *);
  cpostgres_connection *(*connect)(const char *const *, const char *const *, int);
  void (*finish)(cpostgres_connection *);
  int (*status)(const cpostgres_connection *);
  int (*socket)(const cpostgres_connection *);
  char *(*error_message)(const cpostgres_connection *);
  int (*send)(
    cpostgres_connection *, const char *, int, const unsigned *, const char *const *, const int *, const int *, int);
  int (*consume)(cpostgres_connection *);
  int (*is_busy)(cpostgres_connection *);
  cpostgres_result *(*result)(cpostgres_connection *);
  int (*result_status)(const cpostgres_result *);
  char *(*error_field)(const cpostgres_result *, int);
  char *(*result_message)(const cpostgres_result *);
  int (*rows)(const cpostgres_result *);
  int (*columns)(const cpostgres_result *);
  char *(*value)(const cpostgres_result *, int, int);
  int (*is_null)(const cpostgres_result *, int, int);
  void (*clear)(cpostgres_result *);
  cpostgres_notification *(*notification)(cpostgres_connection *);
  cpostgres_notice_processor (*set_notice_processor)(cpostgres_connection *, cpostgres_notice_processor, void *);
  void (*free_memory)(void *);
} cpostgres_api;

/// Returns the name of what is missing, or NULL.
static inline const char *_Nullable cpostgres_load(cpostgres_api *_Nonnull api) {
#if defined(__APPLE__)
  void *library = dlopen("libpq.5.dylib", RTLD_NOW | RTLD_LOCAL);
#else
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
#endif
  if (!library) return "libpq.so.5";
#define CPOSTGRES_FIND(field, name)               \
  *(void **)(&api->field) = dlsym(library, name); \
  if (!api->field) return name;
  CPOSTGRES_FIND(conninfo_parse, "PQconninfoParse")
  CPOSTGRES_FIND(conninfo_free, "PQconninfoFree")
  CPOSTGRES_FIND(connect, "PQconnectdbParams")
  CPOSTGRES_FIND(finish, "PQfinish")
  CPOSTGRES_FIND(status, "PQstatus")
  CPOSTGRES_FIND(socket, "PQsocket")
  CPOSTGRES_FIND(error_message, "PQerrorMessage")
  CPOSTGRES_FIND(send, "PQsendQueryParams")
  CPOSTGRES_FIND(consume, "PQconsumeInput")
  CPOSTGRES_FIND(is_busy, "PQisBusy")
  CPOSTGRES_FIND(result, "PQgetResult")
  CPOSTGRES_FIND(result_status, "PQresultStatus")
  CPOSTGRES_FIND(error_field, "PQresultErrorField")
  CPOSTGRES_FIND(result_message, "PQresultErrorMessage")
  CPOSTGRES_FIND(rows, "PQntuples")
  CPOSTGRES_FIND(columns, "PQnfields")
  CPOSTGRES_FIND(value, "PQgetvalue")
  CPOSTGRES_FIND(is_null, "PQgetisnull")
  CPOSTGRES_FIND(clear, "PQclear")
  CPOSTGRES_FIND(notification, "PQnotifies")
  CPOSTGRES_FIND(set_notice_processor, "PQsetNoticeProcessor")
  CPOSTGRES_FIND(free_memory, "PQfreemem")
#undef CPOSTGRES_FIND
  return NULL;
}
