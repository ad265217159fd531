import BlobSQLite
import Blobs

extension HashListTable {
  /// Forgets the hashes of earlier lists.
  package func forgetEarlier() throws(SQLiteError) {
    try with { database throws(SQLiteError) in try database.statement("DELETE FROM earlier").run() }
  }

  /// Adds the hashes of one earlier list. Hashes of lists that were added before stay, unless this list has another
  /// `original` hash for the file, which means that the content was replaced. `folder`: the folder of that list below
  /// that of the table; empty: the same.
  package func add(earlier records: [HashListRecord], in folder: BytePath = "") throws(SQLiteError) {
    func place(_ path: BytePath) -> BytePath { folder.isEmpty ? path : folder.appending(path) }
    try with { database throws(SQLiteError) in
      try database.transaction { () throws(SQLiteError) in
        for record in records {
          if let old = record.previousPath {
            let rename = try database.statement("UPDATE OR IGNORE earlier SET path = ?2 WHERE path = ?1")
            try rename.bind(1, place(old).bytes)
            try rename.bind(2, place(record.path).bytes)
            try rename.run()
          }
          for hash in record.hashes where hash.action == .original {
            let replaced = try database.statement(
              """
              DELETE FROM earlier WHERE path = ?1 AND EXISTS (
                SELECT 1 FROM earlier e WHERE e.path = ?1 AND e.format = ?2 AND e.digest <> ?3)
              """)
            try replaced.bind(1, place(record.path).bytes)
            try replaced.bind(2, hash.format.rawValue)
            try replaced.bind(3, hash.digest)
            try replaced.run()
          }
          for hash in record.hashes where hash.action != .failed {
            let insert = try database.statement("INSERT OR IGNORE INTO earlier VALUES(?, ?, ?)")
            try insert.bind(1, place(record.path).bytes)
            try insert.bind(2, hash.format.rawValue)
            try insert.bind(3, hash.digest)
            try insert.run()
          }
        }
      }
    }
  }

  /// The hashes that a file must have, by earlier lists; empty: none has the file.
  package func earlier(of path: BytePath) throws(SQLiteError) -> [HashListRecord.Hash] {
    try with { database throws(SQLiteError) in
      let select = try database.statement("SELECT format, digest FROM earlier WHERE path = ?")
      try select.bind(1, path.bytes)
      var found: [HashListRecord.Hash] = []
      while try select.step() {
        guard let format = select.text(0).flatMap({ HashListFormat(rawValue: $0) }) else { continue }
        found.append(.init(format: format, digest: select.blob(1) ?? [], action: nil))
      }
      return found
    }
  }

  /// Removes the hashes of a file, so that `left` does not return it.
  package func take(_ path: BytePath) throws(SQLiteError) {
    try with { database throws(SQLiteError) in
      let delete = try database.statement("DELETE FROM earlier WHERE path = ?")
      try delete.bind(1, path.bytes)
      try delete.run()
    }
  }

  /// Files of earlier lists after `path`, at most 100.
  package func left(after path: BytePath) throws(SQLiteError) -> [BytePath] {
    try with { database throws(SQLiteError) in
      let select = try database.statement("SELECT DISTINCT path FROM earlier WHERE path > ? ORDER BY path LIMIT 100")
      try select.bind(1, path.bytes)
      var found: [BytePath] = []
      while try select.step() { found.append(BytePath(select.blob(0) ?? [])) }
      return found
    }
  }
}
