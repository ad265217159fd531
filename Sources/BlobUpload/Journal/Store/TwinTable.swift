import BlobSQLite

/// The table `twin`: uploads of different sources to one place that have the same bytes, so that none of them replaces
/// another. Most uploads have no row.
struct TwinTable {
  let database: Database

  // Since version 19. Uploads with the same number in `content` have the same bytes.
  static let schema = """
    CREATE TABLE IF NOT EXISTS twin(upload INTEGER PRIMARY KEY, content INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS twin_content ON twin(content);
    """

  /// Must be called inside a transaction. Both uploads have the same bytes, and so have all others that have those of one
  /// of them.
  func keep(_ id: Int64, _ twin: Int64) throws(SQLiteError) {
    if id == twin { return }
    // The number of a content is never that of an upload, which may get other bytes and come back.
    try database.run(
      "INSERT OR IGNORE INTO twin(upload, content) SELECT ?1, ifnull(max(content), 0) + 1 FROM twin", with: twin)
    for text: StaticString in [
      """
      UPDATE twin SET content = (SELECT content FROM twin WHERE upload = ?2)
      WHERE content = (SELECT content FROM twin WHERE upload = ?1)
      """,
      "INSERT OR IGNORE INTO twin(upload, content) SELECT ?1, content FROM twin WHERE upload = ?2",
    ] {
      let change = try database.statement(text)
      try change.bind(1, id)
      try change.bind(2, twin)
      try change.run()
    }
  }

  /// Must be called inside a transaction. The upload has other bytes from now on, or its place has.
  func forget(_ id: Int64) throws(SQLiteError) { try database.run("DELETE FROM twin WHERE upload = ?1", with: id) }
}
