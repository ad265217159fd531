import BlobSQLite

extension JournalStore {
  // Since version 11. Metadata for the server, of uploads that a later process may begin.
  static let metadataSchema = "CREATE TABLE IF NOT EXISTS metadata(upload INTEGER PRIMARY KEY, json TEXT NOT NULL);"

  func metadata(of id: Int64) throws(SQLiteError) -> [String: String] {
    let select = try database.statement("SELECT json FROM metadata WHERE upload = ?1")
    try select.bind(1, id)
    let text = try select.first { $0.text(0) } ?? nil
    // An upload whose metadata cannot be decoded is sent without it.
    return text.flatMap { value($0) } ?? [:]
  }

  func keepMetadata(_ metadata: [String: String], of id: Int64) throws(SQLiteError) {
    try transaction { () throws(SQLiteError) in
      if metadata.isEmpty { return try run("DELETE FROM metadata WHERE upload = ?1", with: id) }
      let insert = try database.statement("INSERT OR REPLACE INTO metadata(upload, json) VALUES(?1, ?2)")
      try insert.bind(1, id)
      try insert.bind(2, json(metadata))
      try insert.run()
    }
  }
}

extension JournalStore {
  /// Nobody needs the metadata of an upload that is done.
  func dropMetadataOfDone() throws(SQLiteError) {
    try transaction { () throws(SQLiteError) in
      try database.statement("DELETE FROM metadata WHERE upload IN (SELECT id FROM upload WHERE state = 2)").run()
    }
  }
}

extension Journal {
  /// `UploadTarget.metadata` of an upload that `keepMetadata` has stored; empty: there is none.
  package func metadata(of id: Int64) throws(JournalError) -> [String: String] {
    try read { store throws(SQLiteError) in try store.metadata(of: id) }
  }

  /// Removes the metadata of uploads that are done.
  package func dropMetadataOfDone() throws(JournalError) {
    try read { store throws(SQLiteError) in try store.dropMetadataOfDone() }
  }

  /// Stores the metadata of an upload for the process that begins it. Empty: nothing is stored any more.
  package func keepMetadata(_ metadata: [String: String], of id: Int64) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepMetadata(metadata, of: id) }
  }
}
