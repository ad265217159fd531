import BlobSQLite

/// The table `seal`: the keys of sealed uploads that are not done, each encrypted under the key in the file beside the journal.
struct SealTable {
  let database: Database

  // Since version 16.
  static let schema = "CREATE TABLE IF NOT EXISTS seal(upload INTEGER PRIMARY KEY, box TEXT NOT NULL);"

  /// Must be called inside a transaction. Does nothing unless `owner` has claimed the upload.
  func keep(_ box: String, of upload: Int64, owner: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      "INSERT OR REPLACE INTO seal(upload, box) SELECT id, ?2 FROM upload WHERE id = ?1 AND owner = ?3")
    try insert.bind(1, upload)
    try insert.bind(2, box)
    try insert.bind(3, owner)
    try insert.run()
  }

  func box(of upload: Int64) throws(SQLiteError) -> String? {
    let select = try database.statement("SELECT box FROM seal WHERE upload = ?1")
    try select.bind(1, upload)
    return try select.first { $0.text(0) } ?? nil
  }

  /// Must be called inside a transaction.
  func remove(from first: Int64, through last: Int64) throws(SQLiteError) {
    let delete = try database.statement("DELETE FROM seal WHERE upload BETWEEN ?1 AND ?2")
    try delete.bind(1, first)
    try delete.bind(2, last)
    try delete.run()
  }

  /// Must be called inside a transaction.
  func remove(_ upload: Int64) throws(SQLiteError) {
    try database.run("DELETE FROM seal WHERE upload = ?1", with: upload)
  }

  /// Whether an upload that is not done, and not given up, has one.
  func isNeeded() throws(SQLiteError) -> Bool {
    let select = try database.statement(
      "SELECT 1 FROM seal JOIN upload ON upload.id = seal.upload WHERE upload.state IN (0, 1, 3) LIMIT 1")
    return try select.first { $0.int(0) } != nil
  }
}
