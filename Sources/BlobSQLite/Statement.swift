import Blobs
import CSQLite

/// A prepared statement: bind values, then call `run`, `first`, or `step` for each row. Use it from one thread at a
/// time.
///
/// Parameters count from 1 and stay bound; columns count from 0 and are valid until the next step.
public final class Statement {
  private let handle: OpaquePointer
  private let sql: String
  private let file: BytePath
  /// Copies of bound texts and BLOBs, by index. They are reused; SQLite's own copies would be allocated and freed for
  /// each run.
  private var values: [UnsafeMutableRawBufferPointer] = []

  init(_ sql: String, connection: OpaquePointer, file: BytePath) throws(SQLiteError) {
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK else { throw lastError(of: connection, firstWords(sql), file) }
    guard let handle else {
      throw SQLiteError("prepare", file, code: SQLITE_MISUSE, "there is no statement in the SQL")
    }
    self.handle = handle
    self.sql = sql
    self.file = file
  }

  deinit {
    sqlite3_finalize(handle)
    for value in values { value.deallocate() }
  }

  // MARK: Values. They are copied, so the caller's may be freed at once. Do not bind between two steps.

  /// Binds an integer to the parameter at `index`, counted from 1; nil binds NULL.
  public func bind(_ index: Int32, _ value: Int64?) throws(SQLiteError) {
    guard let value else { return try bindNull(index) }
    try check(sqlite3_bind_int64(handle, index, value))
  }

  /// Binds a text to the parameter at `index`, counted from 1; nil binds NULL.
  public func bind(_ index: Int32, _ value: String?) throws(SQLiteError) {
    guard var value else { return try bindNull(index) }
    try bindText(index, value.withUTF8 { keep(UnsafeRawBufferPointer($0), as: index) })
  }

  /// Binds a text that need not be UTF-8.
  func bind(_ index: Int32, text: [UInt8]) throws(SQLiteError) {
    try bindText(index, text.withUnsafeBytes { keep($0, as: index) })
  }

  private func bindText(_ index: Int32, _ kept: UnsafeRawBufferPointer?) throws(SQLiteError) {
    guard let kept else { throw misuse(index) }
    let text = kept.baseAddress!.assumingMemoryBound(to: CChar.self)
    try check(sqlite3_bind_text64(handle, index, text, UInt64(kept.count), nil, UInt8(SQLITE_UTF8)))
  }

  var hasParameters: Bool { sqlite3_bind_parameter_count(handle) > 0 }

  /// An empty array is an empty BLOB, not NULL.
  public func bind(_ index: Int32, _ value: [UInt8]?) throws(SQLiteError) {
    guard let value else { return try bindNull(index) }
    guard let kept = value.withUnsafeBytes({ keep($0, as: index) }) else { throw misuse(index) }
    try check(sqlite3_bind_blob64(handle, index, kept.baseAddress, UInt64(kept.count), nil))
  }

  /// Copies a value to memory that stays valid while it is bound. The address is not nil even for an empty value,
  /// because SQLite takes a null address for NULL. Returns nil if the index is invalid, or the statement is running and
  /// may read the old value.
  private func keep(_ bytes: UnsafeRawBufferPointer, as index: Int32) -> UnsafeRawBufferPointer? {
    guard sqlite3_stmt_busy(handle) == 0, index > 0, index <= sqlite3_bind_parameter_count(handle) else { return nil }
    let place = Int(index) - 1
    while values.count <= place { values.append(UnsafeMutableRawBufferPointer(start: nil, count: 0)) }
    if values[place].count < max(1, bytes.count) {
      // The old value is still bound.
      sqlite3_bind_null(handle, index)
      values[place].deallocate()
      values[place] = .allocate(byteCount: max(64, bytes.count + bytes.count / 2), alignment: 16)
    }
    if !bytes.isEmpty { values[place].copyMemory(from: bytes) }
    return UnsafeRawBufferPointer(rebasing: values[place].prefix(bytes.count))
  }

  private func misuse(_ index: Int32) -> SQLiteError {
    SQLiteError(firstWords(sql), file, code: SQLITE_MISUSE, "value \(index) cannot be bound, or not now")
  }

  /// Binds NULL to the parameter at `index`, counted from 1.
  public func bindNull(_ index: Int32) throws(SQLiteError) { try check(sqlite3_bind_null(handle, index)) }

  // MARK: Running

  /// Moves to the next row; returns false, after a reset, when there are no more. A statement that is abandoned earlier
  /// must be `reset`: until then it holds a read transaction.
  public func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      sqlite3_reset(handle)
      return false
    default:
      let error = error
      sqlite3_reset(handle)
      throw error
    }
  }

  /// Runs the statement to its end and ignores rows.
  public func run() throws(SQLiteError) { while try step() {} }

  /// Returns the result of `body` for the first row; nil if there is none.
  public func first<Result>(_ body: (Statement) throws(SQLiteError) -> Result) throws(SQLiteError) -> Result? {
    defer { reset() }
    return try step() ? try body(self) : nil
  }

  /// Ends the current run and its read transaction. Bound values stay.
  public func reset() { sqlite3_reset(handle) }

  // MARK: Columns of the current row

  /// Whether the value in a column of the current row is NULL. Columns are counted from 0.
  public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  /// 0 for NULL.
  public func int(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
  /// The integer in a column of the current row; nil for NULL. Columns are counted from 0.
  public func intOrNil(_ column: Int32) -> Int64? { isNull(column) ? nil : int(column) }

  /// nil for NULL.
  public func text(_ column: Int32) -> String? {
    guard let start = sqlite3_column_text(handle, column) else { return nil }
    let count = Int(sqlite3_column_bytes(handle, column))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// At most `most` bytes of a text or a BLOB, whose length is not trusted. A text is in UTF-8, unless the database has
  /// other bytes for it. A number is returned as text; nil for NULL.
  func bytes(_ column: Int32, atMost most: Int) -> [UInt8]? {
    if sqlite3_column_type(handle, column) == SQLITE_BLOB {
      // SQLite returns a null address for an empty BLOB.
      guard let start = sqlite3_column_blob(handle, column) else { return [] }
      return Array(UnsafeRawBufferPointer(start: start, count: min(most, Int(sqlite3_column_bytes(handle, column)))))
    }
    guard let start = sqlite3_column_text(handle, column) else { return nil }
    return Array(UnsafeBufferPointer(start: start, count: min(most, Int(sqlite3_column_bytes(handle, column)))))
  }

  /// nil for NULL.
  public func blob(_ column: Int32) -> [UInt8]? {
    if isNull(column) { return nil }
    // SQLite returns a null address for an empty BLOB.
    guard let start = sqlite3_column_blob(handle, column) else { return [] }
    return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
  }

  private func check(_ code: Int32) throws(SQLiteError) { if code != SQLITE_OK { throw error } }

  private var error: SQLiteError { lastError(of: sqlite3_db_handle(handle), firstWords(sql), file) }
}
