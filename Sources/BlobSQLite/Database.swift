import Blobs
import CSQLite
import Platform

/// A connection to one SQLite file, in WAL mode at synchronous NORMAL: a commit survives when the process is killed.
///
/// Every call may block on the disk, and up to the busy timeout on another connection. Use it from one thread at a
/// time.
public final class Database {
  /// The path that the file was opened with.
  public let path: BytePath
  private let handle: OpaquePointer
  private var cache: [UnsafePointer<UInt8>: Statement] = [:]
  /// A file created by this connection is not synced until it has a schema: there is nothing to lose yet.
  private var isNew: Bool

  /// The version of the SQLite library, like `3.40.1`.
  package static var libraryVersion: String { String(cString: sqlite3_libversion()) }

  /// Opens the file. If it does not exist, it is created with mode 0600, and missing folders with mode 0700.
  ///
  /// - `tables`: tables that the caller's schema has had in all its versions. A database without them that is not empty
  ///   belongs to another program, and is refused unchanged.
  public init(
    _ path: BytePath, withTables tables: [String] = [], busyTimeout: Duration = .seconds(10)
  ) throws(SQLiteError) {
    self.path = path
    isNew = try path.bytes == inMemory ? true : createPrivateFile(path)
    handle = try openHandle(path)
    sqlite3_extended_result_codes(handle, 1)
    wait(atMost: busyTimeout)
    // A checkpoint on close would make a short run wait for the disk; the next regular checkpoint does the same work.
    _ = fb_sqlite_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    if sqlite3_db_readonly(handle, "main") == 1 {
      throw SQLiteError("open", path, code: SQLITE_READONLY, "no permission to write it")
    }
    if !tables.isEmpty, !isNew { try checkOwner(by: tables) }
    try execute(isNew ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=NORMAL")
    try startWriteAheadLog(within: busyTimeout / .milliseconds(1))
    makePrivate()
    // A journal is written at its end, and mostly its latest rows are read: more cached pages would only use memory.
    try execute("PRAGMA cache_size=-512")
    // The data needed to roll back part of a large transaction would otherwise go to a temporary file.
    try execute("PRAGMA temp_store=MEMORY")
    // The log is truncated to this many bytes after readers have delayed its reuse and it has grown.
    try execute("PRAGMA journal_size_limit=8388608")
  }

  /// Opens an existing file for reading. It writes nothing to the file or beside it that a full disk could refuse. If
  /// there is no space for the index of SQLite's log, which is a file, the index is held in memory. Then no other
  /// connection may have the file open or open it while this one exists.
  ///
  /// On a read-only disk, a file without a log is read as it is. A file whose log cannot be merged into it is refused,
  /// with an error that says what to do.
  public init(reading path: BytePath, busyTimeout: Duration = .seconds(10)) throws(SQLiteError) {
    self.path = path
    isNew = false
    do {
      handle = try openReading(path, busyTimeout, .sharedIndex)
    } catch {
      let mayBeDisk = [SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY].contains(error.code & 0xFF)
      guard mayBeDisk, path.withCString({ access($0, R_OK) }) == 0 else { throw error }
      if let alone = try? openReading(path, busyTimeout, .ownIndex) {
        handle = alone
      } else if isOnReadOnlyDisk(path) {
        let log = BytePath(path.bytes + "-wal".utf8)
        var status = stat()
        if log.status(&status) == 0, status.st_size > 0 {
          throw SQLiteError(
            "read", path, code: SQLITE_READONLY,
            "it is on a disk that cannot be written, and its latest changes are in \(log): copy both files to another "
              + "disk and read them there")
        }
        handle = try openReading(path, busyTimeout, .unchanging)
      } else {
        throw error
      }
    }
  }

  // The connection stays open until the last of its statements has been released.
  deinit { sqlite3_close_v2(handle) }

  /// Sets how long a call waits for another connection's lock before it throws an error with `isBusy`.
  public func wait(atMost limit: Duration) {
    sqlite3_busy_timeout(handle, Int32(max(0, min(limit / .milliseconds(1), 1e9))))
  }

  /// Runs SQL that has no result rows and no parameters.
  public func execute(_ sql: String) throws(SQLiteError) {
    if sqlite3_exec(handle, sql, nil, nil, nil) != SQLITE_OK { throw error(firstWords(sql)) }
  }

  /// The statement for a literal, prepared at its first use and cached. It is reset, but still has the values bound
  /// last.
  public func statement(_ sql: StaticString) throws(SQLiteError) -> Statement {
    if let kept = cache[sql.utf8Start] {
      // An error may have left the statement in the middle of its rows.
      kept.reset()
      return kept
    }
    let statement = try prepare(sql.description)
    cache[sql.utf8Start] = statement
    return statement
  }

  /// Prepares a statement that is not cached.
  public func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    try Statement(sql, connection: handle, file: path)
  }

  /// Runs `body` in a write transaction: everything is committed when this returns, and nothing when it throws.
  /// Transactions cannot be nested.
  public func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    // IMMEDIATE: a transaction that takes its write lock later, at the first write, cannot wait for another commit.
    try statement("BEGIN IMMEDIATE").run()
    do {
      let result = try body()
      try statement("COMMIT").run()
      return result
    } catch {
      // After some errors, such as a full disk, SQLite has already rolled back.
      if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
      throw error
    }
  }

  /// Migrates the schema to `version`. `body` gets the version found, 0 in a new file, and runs in one transaction.
  /// Throws if the file has a newer schema.
  public func migrate(to version: Int64, _ body: (Int64) throws(SQLiteError) -> Void) throws(SQLiteError) {
    if try userVersion() != version {
      try transaction { () throws(SQLiteError) in
        // Checked again inside the transaction: another process may have migrated meanwhile.
        let found = try userVersion()
        if found == version { return }
        if found > version {
          let message = "its format is version \(found), this program knows \(version): use a newer program"
          throw SQLiteError("open", path, code: SQLITE_ERROR, message)
        }
        try body(found)
        try execute("PRAGMA user_version=\(version)")
      }
    }
    if isNew { try execute("PRAGMA synchronous=NORMAL") }
    isNew = false
  }

  private func checkOwner(by tables: [String]) throws(SQLiteError) {
    let select = try prepare("SELECT type, name FROM sqlite_schema")
    var missing = Set(tables)
    var isEmpty = try userVersion() == 0
    while try select.step() {
      isEmpty = false
      if select.text(0) == "table", let name = select.text(1) { missing.remove(name) }
    }
    if !isEmpty, !missing.isEmpty {
      throw SQLiteError("open", path, code: SQLITE_ERROR, "it is a database of another program, which is left alone")
    }
  }

  /// The version number in the file's header; 0 in a new file.
  public func userVersion() throws(SQLiteError) -> Int64 {
    try prepare("PRAGMA user_version").first { $0.int(0) } ?? 0
  }

  /// The number of rows changed by the last INSERT, UPDATE or DELETE, without those changed by triggers.
  public var changes: Int { Int(sqlite3_changes(handle)) }
  /// The row number of the last successful INSERT on this connection; 0 if there was none.
  public var lastInsertedID: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Removes the permissions of other users from the database, its log and its index.
  private func makePrivate() {
    if path.bytes == inMemory { return }
    for suffix in ["", "-wal", "-shm"] {
      var status = stat()
      let file = BytePath(path.bytes + suffix.utf8)
      // If this fails, for example because another user owns the file, the file can still be used.
      if file.status(&status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 {
        _ = file.withCString { chmod($0, status.st_mode & 0o700) }
      }
    }
  }

  private func startWriteAheadLog(within milliseconds: Double) throws(SQLiteError) {
    // The busy timeout does not apply when two connections change to this mode at the same time.
    var waited = 0.0
    while true {
      do { return try execute("PRAGMA journal_mode=WAL") } catch {
        if !error.isBusy || waited >= milliseconds { throw error }
      }
      usleep(5000)
      waited += 5
    }
  }

  private func error(_ operation: String) -> SQLiteError { lastError(of: handle, operation, path) }
}

private let inMemory = Array(":memory:".utf8)

/// The error of the last call on this connection.
func lastError(of connection: OpaquePointer, _ operation: String, _ file: BytePath) -> SQLiteError {
  let code = sqlite3_extended_errcode(connection)
  var message = String(cString: sqlite3_errmsg(connection))
  let number = sqlite3_system_errno(connection)
  let isSystem = [SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_FULL].contains(code & 0xFF)
  if isSystem && number != 0 { message += ": " + String(cString: strerror(number)) }
  return SQLiteError(operation, file, code: code, message)
}

func firstWords(_ sql: String) -> String { sql.split(separator: " ").prefix(3).joined(separator: " ") }

/// Whether no files can be created beside `path`: the file system is mounted read-only, or this user may not write
/// there.
private func isOnReadOnlyDisk(_ path: BytePath) -> Bool {
  let folder = path.folder
  if (folder.isEmpty ? "." : folder).withCString({ access($0, W_OK) }) == 0 { return false }
  return errno == EROFS || errno == EACCES
}

private func openHandle(
  _ path: BytePath, _ access: Int32 = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
) throws(SQLiteError) -> OpaquePointer {
  var handle: OpaquePointer?
  // NOMUTEX: a connection is used by one thread at a time.
  let flags = access | SQLITE_OPEN_NOMUTEX
  let code = try withoutLinks(path).withCString { sqlite3_open_v2($0, &handle, flags, nil) }
  if code == SQLITE_OK, let handle { return handle }
  defer { sqlite3_close_v2(handle) }
  guard let handle else { throw SQLiteError("open", path, code: SQLITE_NOMEM, "out of memory") }
  throw lastError(of: handle, "open", path)
}

/// How a read-only connection opens a file.
private enum ReadingMode {
  /// The index of the log is a file, shared with other connections.
  case sharedIndex
  /// The index of the log is in memory: no other connection may have the file open.
  case ownIndex
  /// Nobody changes the file, and it has no log: SQLite takes no lock and creates no file. https://sqlite.org/uri.html
  case unchanging
}

/// Opens a connection and reads the schema once, which proves that reading works.
private func openReading(
  _ path: BytePath, _ busyTimeout: Duration, _ mode: ReadingMode
) throws(SQLiteError) -> OpaquePointer {
  // With READONLY, SQLite could not take the lock under which no other connection needs the index.
  let handle =
    mode == .unchanging
    ? try openHandle(unchangingURI(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
    : try openHandle(path, SQLITE_OPEN_READWRITE)
  sqlite3_extended_result_codes(handle, 1)
  sqlite3_busy_timeout(handle, Int32(max(0, min(busyTimeout / .milliseconds(1), 1e9))))
  _ = fb_sqlite_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
  let words =
    ["PRAGMA query_only=ON", "PRAGMA temp_store=MEMORY"] + (mode == .ownIndex ? ["PRAGMA locking_mode=EXCLUSIVE"] : [])
  for sql in words + ["SELECT count(*) FROM sqlite_schema"] {
    if sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK { continue }
    let error = lastError(of: handle, "read", path)
    sqlite3_close_v2(handle)
    throw error
  }
  return handle
}

/// Escapes every byte, so that no byte has a special meaning in the URI.
private func unchangingURI(_ path: BytePath) -> BytePath {
  let escaped = path.bytes.map { "%" + hexDigits([$0], uppercase: true) }.joined()
  return BytePath("file:\(escaped)?immutable=1")
}

/// Returns true if the file was created by this call. SQLite gives its log and index files the same mode.
private func createPrivateFile(_ path: BytePath) throws(SQLiteError) -> Bool {
  // O_EXCL: opening and closing an existing file would release this process's locks on it.
  var descriptor = path.withCString { openExclusively($0) }
  if descriptor < 0 && errno == ENOENT {
    path.makeFolders()
    descriptor = path.withCString { openExclusively($0) }
  }
  if descriptor >= 0 {
    close(descriptor)
    return true
  }
  if errno != EEXIST { throw SQLiteError("create", path, code: SQLITE_CANTOPEN, String(cString: strerror(errno))) }
  return false
}

private func openExclusively(_ path: UnsafePointer<CChar>) -> Int32 {
  open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
}
