#pragma once
#include <sqlite3.h>
static inline int fb_sqlite_config(sqlite3 *db, int op, int value) { return sqlite3_db_config(db, op, value, (int *)0); }
