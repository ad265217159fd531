import BlobSQLite

/// The table `metadata`: what is to be told to the server of uploads that a later process may begin.
struct MetadataTable {
  let database: Database

  // Since version 11.
  static let schema = "CREATE TABLE IF NOT EXISTS metadata(upload INTEGER PRIMARY KEY, json TEXT NOT NULL);"

  func metadata(of id: Int64) throws(SQLiteError) -> [String: String] {
    let select = try database.statement("SELECT json FROM metadata WHERE upload = ?1")
    try select.bind(1, id)
    let text = try select.first { $0.text(0) } ?? nil
    // An upload whose metadata cannot be decoded is sent without it.
    return text.flatMap { JSONColumn.decode($0) } ?? [:]
  }

  func keep(_ metadata: [String: String], of id: Int64) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      if metadata.isEmpty { return try database.run("DELETE FROM metadata WHERE upload = ?1", with: id) }
      let insert = try database.statement("INSERT OR REPLACE INTO metadata(upload, json) VALUES(?1, ?2)")
      try insert.bind(1, id)
      try insert.bind(2, JSONColumn.encode(metadata))
      try insert.run()
    }
  }

  /// Nobody needs the metadata of an upload that is done.
  func dropDone() throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      try database.statement("DELETE FROM metadata WHERE upload IN (SELECT id FROM upload WHERE state = 2)").run()
    }
  }
}
