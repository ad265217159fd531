import Blobs
import CSQLite
import Platform

/// A read-only connection to a database of another application. Use it from one thread at a time.
///
/// The file may be malicious. So its schema is not trusted, statements may only read, their resources are limited, and
/// a statement that does not end is interrupted when the work is cancelled.
final class ReadConnection {
  /// Maximum size, in bytes, of a single value that a statement creates or loads. BLOBs that are read in place may be
  /// larger.
  static let longestValue: Int32 = 32 << 20
  let file: BytePath
  let handle: OpaquePointer
  /// SQLite has the address of this object as long as the connection is open.
  private let cancel: Cancellation

  /// `writes`: for a test of how a write on this connection affects its open BLOBs.
  init(_ file: BytePath, _ cancel: Cancellation, writes: Bool = false) throws(SQLiteError) {
    self.file = file
    self.cancel = cancel
    var handle: OpaquePointer?
    let flags = (writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX
    let code = try withoutLinks(file).withCString { sqlite3_open_v2($0, &handle, flags, nil) }
    guard let handle else { throw SQLiteError("open", file, code: SQLITE_NOMEM, "out of memory") }
    if code != SQLITE_OK {
      let error = lastError(of: handle, "open", file)
      // Closed here, because `deinit` only runs once all properties are set.
      sqlite3_close_v2(handle)
      throw error
    }
    self.handle = handle
    sqlite3_extended_result_codes(handle, 1)
    // Otherwise the name of a missing column would be treated as a string, which is the same in every version.
    _ = fb_sqlite_config(handle, SQLITE_DBCONFIG_DQS_DML, 0)
    _ = fb_sqlite_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
    _ = fb_sqlite_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    for (limit, most) in Self.limits { sqlite3_limit(handle, limit, most) }
    if !writes { sqlite3_set_authorizer(handle, { _, action, first, _, _, _ in permission(action, first) }, nil) }
    let context = Unmanaged.passUnretained(cancel).toOpaque()
    // The handler runs some hundred times a second; more often would cost too much, since the check takes a lock.
    sqlite3_progress_handler(handle, 20_000, { isCancelled($0) ? 1 : 0 }, context)
    sqlite3_busy_handler(handle, { context, count in waitsOn(context, count) }, context)
  }

  // The connection stays open until the last of its statements has been released; they must not be stepped any more.
  deinit {
    sqlite3_progress_handler(handle, 0, nil, nil)
    sqlite3_busy_handler(handle, nil, nil)
    sqlite3_close_v2(handle)
  }

  /// These limits are far above what a user's condition and the statements here need. SQLite's defaults apply to the
  /// others.
  private static let limits: [(Int32, Int32)] = [
    (SQLITE_LIMIT_LENGTH, longestValue), (SQLITE_LIMIT_SQL_LENGTH, 1 << 20), (SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (SQLITE_LIMIT_VDBE_OP, 250_000), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]

  func prepare(_ sql: String) throws(SQLiteError) -> Statement { try Statement(sql, connection: handle, file: file) }

  /// Throws if the table has no such column, or is a view: a view could generate rows without end, and has no BLOBs
  /// that can be read in place.
  func checkTable(_ table: String, column: String) throws(SQLiteError) {
    if sqlite3_table_column_metadata(handle, "main", table, column, nil, nil, nil, nil, nil) == SQLITE_OK { return }
    let error = error("look at")
    if error.code & 0xFF != SQLITE_ERROR { throw error }
    let select = try prepare("SELECT 1 FROM main.sqlite_schema WHERE type = 'view' AND name = ?1 COLLATE NOCASE")
    try select.bind(1, table)
    if try select.first({ _ in true }) == true {
      throw SQLiteError("look at", file, code: SQLITE_ERROR, "\(table) is a view, and no table")
    }
    throw error
  }

  /// Throws unless `condition` is one complete expression, because it is inserted into other SQL. Only an expression
  /// can be parsed both without parentheses around it, where it cannot close a parenthesis that it did not open, and
  /// with them, where nothing can follow it.
  func checkCondition(_ condition: String, of table: String) throws(SQLiteError) {
    for text in [condition, "(\(condition))"] {
      // A parameter would get one of the values that are bound in the surrounding statement.
      if try prepare("SELECT 1 FROM \(quoted(table)) WHERE \(text)").hasParameters {
        throw SQLiteError(
          "read", file, code: SQLITE_ERROR, "the condition '\(condition)' has a parameter, and no value for it")
      }
    }
  }

  /// Starts a snapshot that begins with the next read and lasts until this connection is closed.
  func beginSnapshot() throws(SQLiteError) { try prepare("BEGIN").run() }

  /// A number that changes whenever another connection has changed the file. Only call it outside a snapshot.
  func dataVersion() throws(SQLiteError) -> Int64 { try prepare("PRAGMA data_version").first { $0.int(0) } ?? 0 }

  /// Returns an open BLOB, which the caller must close; `sqlite3_blob_reopen` moves it to another row.
  func openBlob(_ place: BlobLocation, row: Int64) throws(SQLiteError) -> OpaquePointer {
    var blob: OpaquePointer?
    if sqlite3_blob_open(handle, "main", place.table, place.column, row, 0, &blob) == SQLITE_OK, let blob {
      return blob
    }
    throw error("open")
  }

  func error(_ operation: String) -> SQLiteError { lastError(of: handle, operation, file) }
}

/// Allows statements to read, to use a snapshot, and to check whether the file was changed.
private func permission(_ action: Int32, _ first: UnsafePointer<CChar>?) -> Int32 {
  switch action {
  case SQLITE_SELECT, SQLITE_READ, SQLITE_FUNCTION, SQLITE_RECURSIVE, SQLITE_TRANSACTION: SQLITE_OK
  case SQLITE_PRAGMA: first.map { strcmp($0, "data_version") } == 0 ? SQLITE_OK : SQLITE_DENY
  default: SQLITE_DENY
  }
}

private func isCancelled(_ context: UnsafeMutableRawPointer?) -> Bool {
  context.map { Unmanaged<Cancellation>.fromOpaque($0).takeUnretainedValue().isCancelled } ?? false
}

/// Whether to try again to get the lock; tries for five seconds.
private func waitsOn(_ context: UnsafeMutableRawPointer?, _ count: Int32) -> Int32 {
  if count >= 500 || isCancelled(context) { return 0 }
  usleep(10_000)
  return 1
}
