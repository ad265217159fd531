import BlobSQLite
import Blobs

/// Rows of databases with names: a row that got another number, as by `REPLACE INTO`, is another source in the journal,
/// and goes to the same place. Once it was sent, an unfinished upload under the old number would only fail: no row has
/// that number and that name.
final class NamedRows {
  private let uploads: UploadTable
  /// This journal has claimed rows of a database that have names.
  private var areClaimed = false

  init(_ uploads: UploadTable) { self.uploads = uploads }

  /// Called for all entries that are claimed, so that only a push of a database pays for `giveUpOthers`.
  func note(_ sources: some Sequence<BytePath>) {
    if !areClaimed { areClaimed = sources.contains { SQLiteBlobTable.withoutNumber($0) != nil } }
  }

  /// Must be called inside a transaction. The upload `id` is done: unfinished uploads of the same row under other
  /// numbers are given up, unless a live process has claimed them. Their bytes at the server are deleted like other
  /// leftovers.
  func giveUpOthers(of id: Int64) throws(SQLiteError) {
    if !areClaimed { return }
    var others: [(id: Int64, key: String)] = []
    do {
      let select = try uploads.database.statement(
        """
        SELECT other.id, other.target, other.owner, other.source, new.source
        FROM upload AS new CROSS JOIN upload AS other INDEXED BY sqlite_autoindex_upload_1 ON other.target = new.target
        WHERE new.id = ?1 AND other.id <> ?1 AND other.state IN (0, 1, 3)
        """)
      try select.bind(1, id)
      defer { select.reset() }
      while try select.step() {
        let row = SQLiteBlobTable.withoutNumber(BytePath(select.blob(4) ?? []))
        if row == nil || SQLiteBlobTable.withoutNumber(BytePath(select.blob(3) ?? [])) != row { continue }
        if let owner = select.intOrNil(2), try uploads.owners.live(owner) != nil { continue }
        others.append((select.int(0), select.text(1) ?? ""))
      }
    }
    for other in others { try uploads.giveUp(other.id, other.key) }
  }
}
