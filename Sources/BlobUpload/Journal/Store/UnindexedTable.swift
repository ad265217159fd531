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

/// An index of sealed names that this journal has sent.
struct SentIndex: Sendable, Hashable {
  /// Its row in the journal; 0: it has none.
  var id: Int64 = 0
  /// Its path below the destination's folder.
  var path: BytePath
  /// Where the server has its bytes, as in `UploadResult`.
  var location: String?
  /// Of its sealed bytes.
  var sha256: [UInt8]
}

/// The tables `unindexed` and `taken`, the files with opaque names, and `names_index`, the indexes that name them.
///
/// A row of `unindexed` is made before an upload begins, and counts once it is done. A row of `taken` is that of a file that was
/// found at the destination under its opaque name, as after a kill that the answer to its upload did not outlive. Both stay, with
/// the index that has the name, so that the name is sent once, and again if that index is lost.
struct UnindexedTable {
  let database: Database

  // Since version 15.
  static let schema = """
    CREATE TABLE IF NOT EXISTS unindexed(upload INTEGER PRIMARY KEY, modified INTEGER, named_in INTEGER);
    CREATE TABLE IF NOT EXISTS taken(
      id INTEGER PRIMARY KEY, destination INTEGER NOT NULL, path BLOB NOT NULL, length INTEGER, modified INTEGER,
      indexed INTEGER NOT NULL, named_in INTEGER, UNIQUE(destination, path)
    );
    """

  // For versions 15 and 16, whose tables are without this column, and without the rows that are in an index.
  static let addedColumns = """
    ALTER TABLE unindexed ADD COLUMN named_in INTEGER;
    ALTER TABLE taken ADD COLUMN named_in INTEGER;
    """

  // For versions 15 and 16, which do not know in which index a name is. Another index has all of them, so that it is noticed
  // if it is lost.
  static let forgottenNames = """
    INSERT OR IGNORE INTO unindexed(upload)
      SELECT u.id FROM upload AS u JOIN destination AS d ON d.id = u.destination
      WHERE u.state = 2 AND json_extract(d.json, '$.seal.names');
    UPDATE taken SET indexed = 0;
    """

  // Since version 17. `files`: the number of files that the index names. `lost`: it is not at the destination, or has other
  // bytes there, and is to be replaced.
  static let indexSchema = """
    CREATE TABLE IF NOT EXISTS names_index(
      id INTEGER PRIMARY KEY, destination INTEGER NOT NULL, path BLOB NOT NULL, location TEXT, sha256 BLOB NOT NULL,
      files INTEGER, lost INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX IF NOT EXISTS unnamed ON unindexed(upload) WHERE named_in IS NULL;
    """

  // For version 17, whose table is without these columns.
  static let addedIndexColumns = """
    ALTER TABLE names_index ADD COLUMN files INTEGER;
    ALTER TABLE names_index ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
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

  /// Must be called inside a transaction. The row of an upload that is done becomes that of another version, which may be
  /// refused: the name of the file that is at the destination is still to be sent.
  func keepName(of upload: Int64) throws(SQLiteError) {
    try database.run(
      """
      INSERT OR IGNORE INTO taken(destination, path, length, modified, indexed)
      SELECT u.destination, u.path, u.length, n.modified, 0 FROM unindexed AS n JOIN upload AS u ON u.id = n.upload
      WHERE n.upload = ?1 AND n.named_in IS NULL
      """, with: upload)
  }

  /// The files that are at one of these destinations.
  func files(at destinations: [Int64], limit: Int) throws(SQLiteError) -> [UnindexedFile] {
    let select = try database.statement(
      """
      SELECT n.upload, u.path, u.length, n.modified FROM unindexed AS n CROSS JOIN upload AS u ON u.id = n.upload
      WHERE n.named_in IS NULL AND u.state = 2 AND u.destination IN (SELECT value FROM json_each(?1))
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

  /// The paths of some files at these destinations that are in an index, in the order of their rows, and the last row; empty:
  /// there are no more. The first call gets `Int64.min`.
  func named(
    at destinations: [Int64], after last: Int64, limit: Int
  ) throws(SQLiteError) -> (paths: [BytePath], last: Int64) {
    let select = try database.statement(
      """
      SELECT id, path FROM (
        SELECT n.upload AS id, u.path AS path FROM unindexed AS n CROSS JOIN upload AS u ON u.id = n.upload
        WHERE n.named_in IS NOT NULL AND u.state = 2 AND u.destination IN (SELECT value FROM json_each(?1))
        UNION ALL
        SELECT -id, path FROM taken WHERE indexed = 1 AND destination IN (SELECT value FROM json_each(?1))
      ) WHERE id > ?2 ORDER BY id LIMIT ?3
      """)
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(destinations))
    try select.bind(2, last)
    try select.bind(3, Int64(limit))
    var (paths, last): ([BytePath], Int64) = ([], last)
    while try select.step() {
      last = select.int(0)
      paths.append(BytePath(select.blob(1) ?? []))
    }
    return (paths, last)
  }

  /// The destinations of all files that are in no index.
  func destinations() throws(SQLiteError) -> [Int64] {
    let select = try database.statement(
      """
      SELECT u.destination FROM unindexed AS n CROSS JOIN upload AS u ON u.id = n.upload
      WHERE n.named_in IS NULL AND u.state = 2
      UNION SELECT destination FROM taken WHERE indexed = 0
      """)
    defer { select.reset() }
    var ids: [Int64] = []
    while try select.step() { ids.append(select.int(0)) }
    return ids
  }

  /// Must be called inside a transaction. Records that an index has these files. If the path already has a row, the
  /// index replaces the lost one.
  func note(_ files: [Int64], in index: SentIndex, at destination: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      """
      INSERT OR REPLACE INTO names_index(id, destination, path, location, sha256, files) VALUES(?1, ?2, ?3, ?4, ?5, ?6)
      """)
    try insert.bind(1, index.id == 0 ? nil : index.id)
    try insert.bind(2, destination)
    try insert.bind(3, index.path.bytes)
    try insert.bind(4, index.location)
    try insert.bind(5, index.sha256)
    try insert.bind(6, Int64(files.count))
    try insert.run()
    let id = database.lastInsertedID
    for file in files {
      let update = try database.statement(
        file > 0
          ? "UPDATE unindexed SET named_in = ?2 WHERE upload = ?1"
          : "UPDATE taken SET indexed = 1, named_in = ?2 WHERE id = -?1")
      try update.bind(1, file)
      try update.bind(2, id)
      try update.run()
    }
  }

  /// The indexes at these destinations, in the order in which they were sent. `areLost`: those that are to be replaced instead.
  func sent(at destinations: [Int64], areLost: Bool) throws(SQLiteError) -> [SentIndex] {
    let select = try database.statement(
      """
      SELECT id, path, location, sha256 FROM names_index
      WHERE destination IN (SELECT value FROM json_each(?1)) AND lost = ?2 ORDER BY id
      """)
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(destinations))
    try select.bind(2, areLost ? 1 : 0)
    var indexes: [SentIndex] = []
    while try select.step() {
      indexes.append(
        SentIndex(
          id: select.int(0), path: BytePath(select.blob(1) ?? []), location: select.text(2),
          sha256: select.blob(3) ?? []))
    }
    return indexes
  }

  /// Must be called inside a transaction. The index is not at the destination any more, or has other bytes: no index has its
  /// files. It is to be replaced if the journal has all names that were in it.
  func lose(_ index: SentIndex) throws(SQLiteError) {
    let count = try database.statement(
      """
      SELECT (SELECT count(*) FROM unindexed WHERE named_in = ?1) + (SELECT count(*) FROM taken WHERE named_in = ?1)
      """)
    try count.bind(1, index.id)
    let known = try count.first { $0.int(0) } ?? 0
    try database.run("UPDATE unindexed SET named_in = NULL WHERE named_in = ?1", with: index.id)
    try database.run("UPDATE taken SET indexed = 0, named_in = NULL WHERE named_in = ?1", with: index.id)
    let update = try database.statement("UPDATE names_index SET lost = 1 WHERE id = ?1 AND files = ?2")
    try update.bind(1, index.id)
    try update.bind(2, known)
    try update.run()
    try database.run("DELETE FROM names_index WHERE id = ?1 AND lost = 0", with: index.id)
  }

  /// Must be called inside a transaction. The destination does not let a lost index be replaced.
  func forget(_ index: SentIndex) throws(SQLiteError) {
    try database.run("DELETE FROM names_index WHERE id = ?1", with: index.id)
  }
}
