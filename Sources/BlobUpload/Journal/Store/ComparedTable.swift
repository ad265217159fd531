import BlobSQLite
import Blobs

/// The table `compared`: files at destinations that were found to have the bytes of their sources.
struct ComparedTable {
  let database: Database

  // Since version 13. `target` is the key of a place, as in the table `upload`.
  static let schema = """
    CREATE TABLE IF NOT EXISTS compared(
      target TEXT NOT NULL, source BLOB NOT NULL, version TEXT NOT NULL, instance TEXT NOT NULL, remote TEXT NOT NULL,
      read_back INTEGER NOT NULL, noted INTEGER NOT NULL, PRIMARY KEY(target, source)
    ) WITHOUT ROWID;
    """

  func version(_ intent: JournalIntent) throws(SQLiteError) -> ComparedVersion? {
    let select = try database.statement(
      "SELECT version, instance, remote, read_back, noted FROM compared WHERE target = ?1 AND source = ?2")
    try select.bind(1, intent.key)
    try select.bind(2, intent.source.bytes)
    return try select.first { row in
      ComparedVersion(
        source: Validator(version: row.text(0) ?? "", instance: row.text(1) ?? ""), remote: row.text(2) ?? "",
        isReadBack: row.int(3) != 0, noted: row.int(4))
    }
  }

  /// The uploads among these whose files were compared.
  func uploads(among ids: [Int64]) throws(SQLiteError) -> Set<Int64> {
    let select = try database.statement(
      """
      SELECT u.id FROM upload AS u JOIN compared AS c ON c.target = u.target AND c.source = u.source
      WHERE u.id IN (SELECT value FROM json_each(?1))
      """)
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(ids))
    var found: Set<Int64> = []
    while try select.step() { found.insert(select.int(0)) }
    return found
  }

  /// Must be called inside a transaction.
  func keep(_ compared: ComparedVersion, of intent: JournalIntent) throws(SQLiteError) {
    let insert = try database.statement(
      """
      INSERT OR REPLACE INTO compared(target, source, version, instance, remote, read_back, noted)
      VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """)
    try insert.bind(1, intent.key)
    try insert.bind(2, intent.source.bytes)
    try insert.bind(3, compared.source.version)
    try insert.bind(4, compared.source.instance)
    try insert.bind(5, compared.remote)
    try insert.bind(6, compared.isReadBack ? 1 : 0)
    try insert.bind(7, currentSeconds())
    try insert.run()
  }

  /// Must be called inside a transaction.
  func forget(_ intent: JournalIntent) throws(SQLiteError) {
    let delete = try database.statement("DELETE FROM compared WHERE target = ?1 AND source = ?2")
    try delete.bind(1, intent.key)
    try delete.bind(2, intent.source.bytes)
    try delete.run()
  }
}
