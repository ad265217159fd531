import Blobs
import CSQLite

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A connection that only reads, to a database of someone else's. One thread at a time.
final class ReadConnection {
  let file: BytePath
  let handle: OpaquePointer

  /// `writes`: for a test of what a write on this connection does to its open BLOBs.
  init(_ file: BytePath, writes: Bool = false) throws(SQLiteError) {
    self.file = file
    var handle: OpaquePointer?
    let flags = (writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX
    let code = file.withCString { sqlite3_open_v2($0, &handle, flags, nil) }
    guard let handle else { throw SQLiteError("open", file, code: SQLITE_NOMEM, "out of memory") }
    self.handle = handle
    if code != SQLITE_OK {
      let error = lastError(of: handle, "open", file)
      sqlite3_close_v2(handle)
      throw error
    }
    sqlite3_extended_result_codes(handle, 1)
    sqlite3_busy_timeout(handle, 5000)
    // Or the name of a column that is not there would be taken for a text, the same in every version.
    _ = fb_sqlite_config(handle, SQLITE_DBCONFIG_DQS_DML, 0)
  }

  // Statements someone still holds keep the connection until they are gone.
  deinit { sqlite3_close_v2(handle) }

  func prepare(_ sql: String) throws(SQLiteError) -> Statement { try Statement(sql, connection: handle, file: file) }

  /// From the next read to the end of this connection, one snapshot.
  func beginSnapshot() throws(SQLiteError) { try prepare("BEGIN").run() }

  /// Another number whenever another connection has changed the file; outside a snapshot only.
  func dataVersion() throws(SQLiteError) -> Int64 { try prepare("PRAGMA data_version").first { $0.int(0) } ?? 0 }

  /// An open BLOB; `close` it, or `sqlite3_blob_reopen` it.
  func openBlob(_ place: BlobPlace, row: Int64) throws(SQLiteError) -> OpaquePointer {
    var blob: OpaquePointer?
    if sqlite3_blob_open(handle, "main", place.table, place.column, row, 0, &blob) == SQLITE_OK, let blob {
      return blob
    }
    throw error("open")
  }

  func error(_ operation: String) -> SQLiteError { lastError(of: handle, operation, file) }
}
