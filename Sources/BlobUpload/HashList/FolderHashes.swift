import BlobCrypto
import BlobSQLite
import Blobs

/// Computes the hashes of the folders of a list.
package enum FolderHashes {
  /// Fills in the two hashes of each folder. The content hash of a folder is computed over the sorted hashes of its
  /// files and folders. The structure hash is computed over the sorted hashes of each name together with its hash.
  package static func add(to table: HashListTable, _ format: HashListFormat) throws(SQLiteError) {
    try table.with { database throws(SQLiteError) in
      try database.transaction { () throws(SQLiteError) in
        try database.execute("DELETE FROM folder; DELETE FROM child")
        let files = try database.prepare(
          "SELECT file.path, folder, name, digest FROM file JOIN hash USING(path) WHERE format = ?")
        try files.bind(1, format.rawValue)
        var known: BytePath?
        while try files.step() {
          let (folder, name) = (BytePath(files.blob(1) ?? []), files.blob(2) ?? [])
          if folder != known { try add(folder, in: database) }
          known = folder
          let digest = files.blob(3) ?? []
          try add(name, digest, digest, to: folder, format, in: database)
        }
        let folders = try database.prepare("SELECT path FROM folder ORDER BY depth DESC")
        while try folders.step() {
          let path = BytePath(folders.blob(0) ?? [])
          let content = try hash(
            of: "SELECT content FROM child WHERE folder = ? ORDER BY content", path, format, database)
          let structure = try hash(
            of: "SELECT part FROM child WHERE folder = ? ORDER BY part", path, format, database)
          let update = try database.statement("UPDATE folder SET content = ?, structure = ? WHERE path = ?")
          try update.bind(1, content)
          try update.bind(2, structure)
          try update.bind(3, path.bytes)
          try update.run()
          if path.isEmpty { continue }
          try add(path.name.bytes, content, structure, to: HashListTable.folder(of: path), format, in: database)
        }
      }
    }
  }

  /// Adds a folder and those around it.
  private static func add(_ folder: BytePath, in database: Database) throws(SQLiteError) {
    var parts = folder.components
    while true {
      let insert = try database.statement("INSERT OR IGNORE INTO folder(path, depth) VALUES(?, ?)")
      try insert.bind(1, parts.reduce(into: BytePath("")) { $0 = $0.isEmpty ? $1 : $0.appending($1) }.bytes)
      try insert.bind(2, Int64(parts.count))
      try insert.run()
      if database.changes == 0 || parts.popLast() == nil { return }
    }
  }

  private static func add(
    _ name: [UInt8], _ content: [UInt8], _ structure: [UInt8], to folder: BytePath, _ format: HashListFormat,
    in database: Database
  ) throws(SQLiteError) {
    let insert = try database.statement("INSERT INTO child VALUES(?, ?, ?)")
    try insert.bind(1, folder.bytes)
    try insert.bind(2, content)
    try insert.bind(3, Digest.value(of: name + structure, format.algorithm))
    try insert.run()
  }

  private static func hash(
    of sql: StaticString, _ folder: BytePath, _ format: HashListFormat, _ database: Database
  ) throws(SQLiteError) -> [UInt8] {
    let select = try database.statement(sql)
    try select.bind(1, folder.bytes)
    let digest = Digest(format.algorithm)
    while try select.step() { (select.blob(0) ?? []).withUnsafeBytes { digest.update($0) } }
    return digest.value()
  }
}
