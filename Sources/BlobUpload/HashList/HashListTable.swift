import BlobCrypto
import BlobSQLite
import Blobs
import Synchronization

/// The action that a list states for a hash, by the words of ASC MHL.
package enum HashListAction: String, Sendable {
  /// The hash is the first of the file, or of bytes that replaced those of earlier lists on purpose.
  case original
  /// The hash is that of an earlier list, or another hash of bytes that have an earlier one.
  case verified
  /// The hash is another one than that of an earlier list.
  case failed
}

/// A file of a new list.
package struct HashListFile: Sendable {
  /// Below the folder of the list.
  package var path: BytePath
  /// In bytes.
  package var size: Int64
  /// In nanoseconds since 1970.
  package var modified: Int64?
  /// Where the file can be read; nil: it cannot be read again.
  package var source: BytePath?
  /// nil: its bytes were not read in order.
  package var digest: [UInt8]?
  /// The file was sent to replace what was under its name.
  package var replaces: Bool

  package init(
    path: BytePath, size: Int64, modified: Int64?, source: BytePath?, digest: [UInt8]?, replaces: Bool = false
  ) {
    (self.path, self.size, self.modified, self.source, self.digest) = (path, size, modified, source, digest)
    self.replaces = replaces
  }
}

/// The files of a new hash list and the hashes of the lists before it. They are in a temporary table of SQLite, which goes to a
/// temporary file when there are many. Every call may block.
package final class HashListTable: @unchecked Sendable {
  // `lock` guards the connection, which is used by one thread at a time.
  private let lock = Mutex(())
  private let database: Database

  package init() throws(SQLiteError) {
    database = try Database(":memory:")
    try database.execute(
      """
      PRAGMA temp_store=FILE;
      CREATE TEMP TABLE file(
        path BLOB PRIMARY KEY, folder BLOB, name BLOB, size INT, modified INT, source BLOB, replaces INT) WITHOUT ROWID;
      CREATE TEMP TABLE hash(path BLOB, format TEXT, digest BLOB, date INT, action TEXT, PRIMARY KEY(path, format))
        WITHOUT ROWID;
      CREATE TEMP TABLE earlier(path BLOB, format TEXT, digest BLOB, PRIMARY KEY(path, format)) WITHOUT ROWID;
      CREATE TEMP TABLE folder(path BLOB PRIMARY KEY, depth INT, content BLOB, structure BLOB) WITHOUT ROWID;
      CREATE TEMP TABLE child(folder BLOB, content BLOB, part BLOB);
      CREATE INDEX temp.child_content ON child(folder, content);
      CREATE INDEX temp.child_part ON child(folder, part);
      """)
  }

  /// Runs `body` with the connection.
  func with<Result: Sendable>(_ body: (Database) throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    try lock.withLock { _ throws(SQLiteError) in try body(database) }
  }

  /// Adds files, with their digests in `format`. A file that is added again replaces the first one.
  package func add(_ files: [HashListFile], _ format: HashListFormat, date: Int64) throws(SQLiteError) {
    try with { database throws(SQLiteError) in
      try database.transaction { () throws(SQLiteError) in
        for file in files {
          let insert = try database.statement("INSERT OR REPLACE INTO file VALUES(?, ?, ?, ?, ?, ?, ?)")
          try insert.bind(1, file.path.bytes)
          try insert.bind(2, Self.folder(of: file.path).bytes)
          try insert.bind(3, file.path.name.bytes)
          try insert.bind(4, file.size)
          try insert.bind(5, file.modified)
          try insert.bind(6, file.source?.bytes)
          try insert.bind(7, file.replaces ? 1 : 0)
          try insert.run()
          if let digest = file.digest { try Self.add(digest, format, of: file.path, date, in: database) }
        }
      }
    }
  }

  /// Adds a digest of a file that is in the table.
  package func add(_ digest: [UInt8], _ format: HashListFormat, of path: BytePath, date: Int64) throws(SQLiteError) {
    try with { database throws(SQLiteError) in try Self.add(digest, format, of: path, date, in: database) }
  }

  private static func add(
    _ digest: [UInt8], _ format: HashListFormat, of path: BytePath, _ date: Int64, in database: Database
  ) throws(SQLiteError) {
    let insert = try database.statement("INSERT OR REPLACE INTO hash(path, format, digest, date) VALUES(?, ?, ?, ?)")
    try insert.bind(1, path.bytes)
    try insert.bind(2, format.rawValue)
    try insert.bind(3, digest)
    try insert.bind(4, date)
    try insert.run()
  }

  /// Removes a file that cannot be read again.
  package func remove(_ path: BytePath) throws(SQLiteError) {
    try with { database throws(SQLiteError) in
      let delete = try database.statement("DELETE FROM file WHERE path = ?")
      try delete.bind(1, path.bytes)
      try delete.run()
      let hashes = try database.statement("DELETE FROM hash WHERE path = ?")
      try hashes.bind(1, path.bytes)
      try hashes.run()
    }
  }

  /// The number of files.
  package func count() throws(SQLiteError) -> Int {
    try with { database throws(SQLiteError) in
      try database.statement("SELECT count(*) FROM file").first { Int($0.int(0)) } ?? 0
    }
  }

  /// Files of which a hash is wanted that is not known, at most 100 in one call, after `path`: that in `format`, and the first
  /// one of an earlier list if none of those lists has `format`.
  package func incomplete(
    after path: BytePath, _ format: HashListFormat
  ) throws(SQLiteError) -> [(file: HashListFile, formats: [HashListFormat])] {
    try with { database throws(SQLiteError) in
      let select = try database.statement(
        """
        SELECT path, size, modified, source, own, other FROM (
          SELECT file.path, size, modified, source, h.path IS NOT NULL AS own,
            (SELECT format FROM earlier e WHERE e.path = file.path
              AND NOT EXISTS (SELECT 1 FROM earlier s WHERE s.path = file.path AND s.format = ?2)
              AND NOT EXISTS (SELECT 1 FROM hash k WHERE k.path = file.path AND k.format = e.format) LIMIT 1) AS other
          FROM file LEFT JOIN hash h ON h.path = file.path AND h.format = ?2 WHERE file.path > ?1)
        WHERE NOT own OR other IS NOT NULL ORDER BY path LIMIT 100
        """)
      try select.bind(1, path.bytes)
      try select.bind(2, format.rawValue)
      var found: [(HashListFile, [HashListFormat])] = []
      while try select.step() {
        let file = HashListFile(
          path: BytePath(select.blob(0) ?? []), size: select.int(1), modified: select.intOrNil(2),
          source: select.blob(3).map { BytePath($0) }, digest: nil)
        let other = select.text(5).flatMap { HashListFormat(rawValue: $0) }
        found.append((file, (select.int(4) == 0 ? [format] : []) + (other.map { [$0] } ?? [])))
      }
      return found
    }
  }

  /// Decides what is done with each hash, from the hashes of earlier lists. Returns the paths of at most 100 files that failed,
  /// and the number of files that replace others.
  package func judge() throws(SQLiteError) -> (failed: [BytePath], replaced: Int) {
    try with { database throws(SQLiteError) in
      try database.statement(
        """
        UPDATE hash SET action = CASE
          WHEN NOT EXISTS (SELECT 1 FROM earlier e WHERE e.path = hash.path) THEN 'original'
          WHEN EXISTS (SELECT 1 FROM earlier e JOIN hash h ON h.path = e.path AND h.format = e.format
            WHERE e.path = hash.path AND h.digest <> e.digest)
            THEN (SELECT CASE WHEN replaces THEN 'original' ELSE 'failed' END FROM file f WHERE f.path = hash.path)
          ELSE 'verified' END
        """
      ).run()
      let select = try database.statement(
        "SELECT DISTINCT path FROM hash WHERE action = 'failed' ORDER BY path LIMIT 100")
      var failed: [BytePath] = []
      while try select.step() { failed.append(BytePath(select.blob(0) ?? [])) }
      let replaced = try database.statement(
        "SELECT count(DISTINCT path) FROM hash JOIN earlier USING(path) WHERE action = 'original'")
      return (failed, try replaced.first { Int($0.int(0)) } ?? 0)
    }
  }

  /// The path of the folder, without a slash at its end; empty: the folder of the list.
  static func folder(of path: BytePath) -> BytePath {
    let folder = path.folder.bytes
    return BytePath(folder.last == UInt8(ascii: "/") ? folder.dropLast() : folder[...])
  }
}
