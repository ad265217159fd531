import BlobSQLite
import Blobs

extension Journal {
  /// Whether any upload, finished or not, has its source in `folder` or in a folder below it. `folder` is absolute.
  public func hasUploads(in folder: BytePath) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.hasUploads(in: folder) }
  }
}

extension JournalStore {
  fileprivate func hasUploads(in folder: BytePath) throws(SQLiteError) -> Bool {
    var bytes = folder.bytes
    while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    let select = try database.statement("SELECT 1 FROM upload WHERE source >= ?1 AND source < ?2 LIMIT 1")
    // The digit 0 follows the slash in ASCII, so this range holds all names that begin with the folder and a slash.
    try select.bind(1, bytes + [UInt8(ascii: "/")])
    try select.bind(2, bytes + [UInt8(ascii: "0")])
    return try select.first { $0.int(0) } != nil
  }
}
