import BlobSQLite
import Blobs

extension Journal {
  /// Whether any upload, finished or not, has its source in `folder` or in a folder below it. `folder` is absolute.
  public func hasUploads(in folder: BytePath) throws(JournalError) -> Bool {
    var name = folder.bytes
    while name.last == UInt8(ascii: "/") { name.removeLast() }
    return try hasUploads(beginning: name + [UInt8(ascii: "/")])
  }

  /// Whether any upload, finished or not, has a source whose name begins with `prefix`, which ends in an ASCII character.
  public func hasUploads(beginning prefix: [UInt8]) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.hasUploads(beginning: prefix) }
  }
}

extension JournalStore {
  fileprivate func hasUploads(beginning prefix: [UInt8]) throws(SQLiteError) -> Bool {
    guard let last = prefix.last, last < .max else { return false }
    let select = try database.statement("SELECT 1 FROM upload WHERE source >= ?1 AND source < ?2 LIMIT 1")
    // These are all names that begin with the prefix: the next character takes the place of its last one.
    try select.bind(1, prefix)
    try select.bind(2, prefix.dropLast() + [last + 1])
    return try select.first { $0.int(0) } != nil
  }
}
