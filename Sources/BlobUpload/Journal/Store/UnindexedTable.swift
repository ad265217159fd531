import BlobSQLite
import Blobs

/// A file that is at a destination under an opaque name, and in none of the indexes there.
struct UnindexedFile: Sendable, Hashable {
  /// For `UnindexedTable.remove`.
  var id: Int64
  /// The path that it would have if its name were not sealed.
  var path: BytePath
  var length: Int64?
  var modified: Int64?
}

/// The tables `unindexed` and `taken`: the files with opaque names that no index at the destination names.
///
/// A row of `unindexed` is made before an upload begins, counts once it is done, and is removed when an index has it. A row of
/// `taken` is that of a file that was found at the destination under its opaque name, as after a kill that the answer to its upload
/// did not outlive. It stays, so that its name is sent once.
struct UnindexedTable {
  let database: Database

  // Since version 15.
  static let schema = """
    CREATE TABLE IF NOT EXISTS unindexed(upload INTEGER PRIMARY KEY, modified INTEGER);
    CREATE TABLE IF NOT EXISTS taken(
      id INTEGER PRIMARY KEY, destination INTEGER NOT NULL, path BLOB NOT NULL, length INTEGER, modified INTEGER,
      indexed INTEGER NOT NULL, UNIQUE(destination, path)
    );
    """

  /// Must be called inside a transaction.
  func keep(_ name: SealedNameFacts, of upload: Int64) throws(SQLiteError) {
    let insert = try database.statement("INSERT OR REPLACE INTO unindexed(upload, modified) VALUES(?1, ?2)")
    try insert.bind(1, upload)
    try insert.bind(2, name.modified)
    try insert.run()
  }

  /// A file that is at the destination, and that this journal does not know to be done. Its `id` is not used.
  func keepTaken(_ file: UnindexedFile, at destination: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      "INSERT OR IGNORE INTO taken(destination, path, length, modified, indexed) VALUES(?1, ?2, ?3, ?4, 0)")
    try insert.bind(1, destination)
    try insert.bind(2, file.path.bytes)
    try insert.bind(3, file.length)
    try insert.bind(4, file.modified)
    try insert.run()
  }

  /// The files that are at one of these destinations.
  func files(at destinations: [Int64], limit: Int) throws(SQLiteError) -> [UnindexedFile] {
    let select = try database.statement(
      """
      SELECT n.upload, u.path, u.length, n.modified FROM unindexed AS n CROSS JOIN upload AS u ON u.id = n.upload
      WHERE u.state = 2 AND u.destination IN (SELECT value FROM json_each(?1))
      UNION ALL
      SELECT -id, path, length, modified FROM taken
      WHERE indexed = 0 AND destination IN (SELECT value FROM json_each(?1))
      LIMIT ?2
      """)
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(destinations))
    try select.bind(2, Int64(limit))
    var files: [UnindexedFile] = []
    while try select.step() {
      files.append(
        UnindexedFile(
          id: select.int(0), path: BytePath(select.blob(1) ?? []), length: select.intOrNil(2),
          modified: select.intOrNil(3)))
    }
    return files
  }

  /// The destinations of all such files.
  func destinations() throws(SQLiteError) -> [Int64] {
    let select = try database.statement(
      """
      SELECT u.destination FROM unindexed AS n CROSS JOIN upload AS u ON u.id = n.upload WHERE u.state = 2
      UNION SELECT destination FROM taken WHERE indexed = 0
      """)
    defer { select.reset() }
    var ids: [Int64] = []
    while try select.step() { ids.append(select.int(0)) }
    return ids
  }

  /// Must be called inside a transaction. An index has these files.
  func remove(_ files: [Int64]) throws(SQLiteError) {
    for id in files {
      if id > 0 {
        try database.run("DELETE FROM unindexed WHERE upload = ?1", with: id)
      } else {
        try database.run("UPDATE taken SET indexed = 1 WHERE id = -?1", with: id)
      }
    }
  }
}
