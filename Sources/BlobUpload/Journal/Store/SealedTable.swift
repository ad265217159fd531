import BlobSQLite

/// The table `sealed`: what is known of the ciphertext of uploads that are done, so that a check can compare it with the file at
/// the destination. The keys of these files are forgotten.
struct SealedTable {
  let database: Database

  // Since version 14.
  static let schema =
    "CREATE TABLE IF NOT EXISTS sealed(upload INTEGER PRIMARY KEY, sha256 BLOB, version TEXT);"

  /// Must be called inside a transaction.
  func keep(_ content: SealedContent, of upload: Int64) throws(SQLiteError) {
    let insert = try database.statement("INSERT OR REPLACE INTO sealed(upload, sha256, version) VALUES(?1, ?2, ?3)")
    try insert.bind(1, upload)
    try insert.bind(2, content.sha256)
    try insert.bind(3, content.version)
    try insert.run()
  }

  /// The contents of those uploads that have a row, by their ids.
  func contents(of uploads: [Int64]) throws(SQLiteError) -> [Int64: SealedContent] {
    let select = try database.statement(
      "SELECT upload, sha256, version FROM sealed WHERE upload IN (SELECT value FROM json_each(?1))")
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(uploads))
    var contents: [Int64: SealedContent] = [:]
    while try select.step() {
      contents[select.int(0)] = SealedContent(sha256: select.blob(1), version: select.text(2))
    }
    return contents
  }
}
