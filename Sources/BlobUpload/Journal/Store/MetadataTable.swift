import BlobSQLite
import Blobs

/// The table `metadata`: what is to be told to the server of uploads that a later process may begin.
struct MetadataTable {
  let database: Database

  // Since version 11.
  static let schema = "CREATE TABLE IF NOT EXISTS metadata(upload INTEGER PRIMARY KEY, json TEXT NOT NULL);"

  func addition(of id: Int64) throws(SQLiteError) -> JournalAddition? {
    let select = try database.statement("SELECT json FROM metadata WHERE upload = ?1")
    try select.bind(1, id)
    let text = try select.first { $0.text(0) } ?? nil
    // An upload whose addition cannot be decoded is sent without its metadata.
    return text.flatMap { JSONColumn.decode($0) }
  }

  /// The same for several uploads, by their ids.
  func additions(of ids: [Int64]) throws(SQLiteError) -> [Int64: JournalAddition] {
    let select = try database.statement(
      "SELECT upload, json FROM metadata WHERE upload IN (SELECT value FROM json_each(?1))")
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(ids))
    var additions: [Int64: JournalAddition] = [:]
    while try select.step() { additions[select.int(0)] = select.text(1).flatMap { JSONColumn.decode($0) } }
    return additions
  }

  /// Must be called inside a transaction.
  func keep(_ addition: JournalAddition?, of id: Int64) throws(SQLiteError) {
    guard let addition else { return try database.run("DELETE FROM metadata WHERE upload = ?1", with: id) }
    let insert = try database.statement("INSERT OR REPLACE INTO metadata(upload, json) VALUES(?1, ?2)")
    try insert.bind(1, id)
    try insert.bind(2, JSONColumn.encode(addition))
    try insert.run()
  }

  /// Must be called inside a transaction. Nobody needs the addition of an upload that is done or superseded, unless the
  /// source was added again since, or in a later version than the one that is done. Returns the ids of those uploads.
  func dropDone() throws(SQLiteError) -> [Int64] {
    let select = try database.statement(
      """
      SELECT metadata.upload, metadata.json, upload.version, upload.state FROM metadata JOIN upload ON upload.id = metadata.upload
      WHERE upload.state = 2 OR upload.state = 4 AND upload.location IS NOT NULL
      """)
    var (done, addedAgain): ([Int64], [Int64]) = ([], [])
    do {
      defer { select.reset() }
      while try select.step() {
        let addition: JournalAddition? = select.text(1).flatMap { JSONColumn.decode($0) }
        // An addition to a superseded upload counts only if it is marked as `isAgain`: the others were made before that
        // upload ended.
        let isLater = addition?.version.map { select.int(3) == 2 && $0 != select.text(2) } ?? false
        if isLater || addition?.isAgain == true {
          addedAgain.append(select.int(0))
        } else {
          done.append(select.int(0))
        }
      }
    }
    for id in done { try keep(nil, of: id) }
    return addedAgain
  }
}
