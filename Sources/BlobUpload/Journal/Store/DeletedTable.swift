import BlobSQLite
import Blobs

/// The table `deleted`: uploads whose sources were proved at the destination to be deleted here, so that the destination may
/// have the only copy. A row is written before the source is deleted, which may then stay for another reason.
struct DeletedTable {
  let database: Database

  // Since version 20.
  static let schema = "CREATE TABLE IF NOT EXISTS deleted(upload INTEGER PRIMARY KEY);"

  /// Must be called inside a transaction. An upload that is not done is left out.
  func keep(_ key: String, _ source: BytePath) throws(SQLiteError) {
    let insert = try database.statement(
      "INSERT OR IGNORE INTO deleted SELECT id FROM upload WHERE target = ?1 AND source = ?2 AND state = 2")
    try insert.bind(1, key)
    try insert.bind(2, source.bytes)
    try insert.run()
  }

  var isEmpty: Bool {
    get throws(SQLiteError) { try database.statement("SELECT 1 FROM deleted LIMIT 1").first { _ in true } == nil }
  }

  /// Other sources of which the place of `intent` may have the only copy, except those that have the same bytes.
  func others(of intent: JournalIntent) throws(SQLiteError) -> [BytePath] {
    let select = try database.statement(
      """
      SELECT source FROM upload WHERE target = ?1 AND source <> ?2 AND state = 2
      AND id IN (SELECT upload FROM deleted) AND ifnull((SELECT content FROM twin WHERE twin.upload = upload.id) <>
      (SELECT content FROM twin JOIN upload AS own ON own.id = twin.upload
      WHERE own.target = ?1 AND own.source = ?2 AND own.version = ?3 AND own.instance = ?4), 1)
      """)
    defer { select.reset() }
    try select.bind(1, intent.key)
    try select.bind(2, intent.source.bytes)
    try select.bind(3, intent.validator?.version)
    try select.bind(4, intent.validator?.instance)
    var sources: [BytePath] = []
    while try select.step() { sources.append(BytePath(select.blob(0) ?? [])) }
    return sources
  }

  /// Must be called inside a transaction. The row has another upload from now on, or none.
  func forget(_ id: Int64) throws(SQLiteError) { try database.run("DELETE FROM deleted WHERE upload = ?1", with: id) }
}
