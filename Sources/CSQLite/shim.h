#pragma once
#include <sqlite3.h>
// The destructor constants are casts, which Swift does not import.
static inline sqlite3_destructor_type fb_sqlite_transient(void) { return SQLITE_TRANSIENT; }
static inline sqlite3_destructor_type fb_sqlite_static(void) { return SQLITE_STATIC; }
static inline int fb_sqlite_config(sqlite3 *db, int op, int value) { return sqlite3_db_config(db, op, value, (int *)0); }
