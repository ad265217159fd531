import BlobSQLite
import Blobs

/// The table `deleted`: versions of sources that were proved at a destination to be deleted here, so that the destination may
/// have the only copy. A row is written before the source is deleted, and does not depend on the upload's entry, which gets
/// another version as soon as another file has the path.
struct DeletedTable {
  let database: Database

  // Since version 20. `at`: seconds since 1970.
  static let schema = """
    CREATE TABLE IF NOT EXISTS deleted(
      target TEXT NOT NULL, source BLOB NOT NULL, version TEXT NOT NULL, instance TEXT, at INTEGER NOT NULL,
      PRIMARY KEY(target, source, version)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS deleted_source ON deleted(source);
    """

  /// Must be called inside a transaction. An upload that is not done, or of another version, is left out.
  func keep(_ intent: JournalIntent) throws(SQLiteError) {
    let insert = try database.statement(
      """
      INSERT OR REPLACE INTO deleted SELECT target, source, version, instance, ?4 FROM upload
      WHERE target = ?1 AND source = ?2 AND version = ?3 AND state = 2
      """)
    try insert.bind(1, intent.key)
    try insert.bind(2, intent.source.bytes)
    try insert.bind(3, intent.validator?.version)
    try insert.bind(4, currentSeconds())
    try insert.run()
  }

  var isEmpty: Bool {
    get throws(SQLiteError) { try database.statement("SELECT 1 FROM deleted LIMIT 1").first { _ in true } == nil }
  }

  /// Sources of which the place of `intent` may have the only copy, except those that have the same bytes. One of them may be
  /// the source of `intent` itself, if another file has its path now. A version is not there any more once a later upload to
  /// the place is done.
  func versions(at intent: JournalIntent) throws(SQLiteError) -> [BytePath] {
    let select = try database.statement(
      """
      SELECT source FROM deleted WHERE target = ?1 AND NOT (source = ?2 AND version = ?3 AND instance IS ?4)
      AND NOT EXISTS (SELECT 1 FROM upload WHERE upload.target = ?1 AND state = 2 AND updated > deleted.at
      AND NOT (upload.source = deleted.source AND upload.version = deleted.version
      AND upload.instance IS deleted.instance))
      AND ifnull((SELECT content FROM twin JOIN upload AS other ON other.id = twin.upload
      WHERE other.target = ?1 AND other.source = deleted.source AND other.version = deleted.version) <>
      (SELECT content FROM twin JOIN upload AS own ON own.id = twin.upload
      WHERE own.target = ?1 AND own.source = ?2 AND own.version = ?3 AND own.instance = ?4), 1)
      """)
    defer { select.reset() }
    try select.bind(1, intent.key)
    try select.bind(2, intent.source.bytes)
    try select.bind(3, intent.validator?.version ?? "")
    try select.bind(4, intent.validator?.instance)
    var sources: [BytePath] = []
    while try select.step() { sources.append(BytePath(select.blob(0) ?? [])) }
    return sources
  }

  /// Must be called inside a transaction. The source was not deleted after all.
  func forget(_ source: BytePath) throws(SQLiteError) {
    let delete = try database.statement("DELETE FROM deleted WHERE source = ?1")
    try delete.bind(1, source.bytes)
    try delete.run()
  }

  /// Must be called inside a transaction. The entry of the upload is removed.
  func forget(entry id: Int64) throws(SQLiteError) {
    try database.run(
      """
      DELETE FROM deleted WHERE (target, source, version) =
      (SELECT target, source, version FROM upload WHERE id = ?1 AND state = 2)
      """, with: id)
  }
}
