import BlobSQLite
import Blobs

extension JournalStore {
  /// Inside a transaction, before the claim ends: moves what this process has under way of an upload into the journal.
  /// An upload that did not succeed and has no session begins anew, so nothing of it is kept.
  func keepSent(_ upload: Int64, _ me: Int64, hasSucceeded: Bool = false) throws(SQLiteError) {
    guard let range = log.range(of: upload) else { return }
    try keep(range, of: upload, sentBy: me, hasSucceeded: hasSucceeded)
    log.drop(upload)
  }

  /// Inside a transaction. Keeps a range for an upload that `owner` still has.
  func keep(
    _ range: SentRange, of upload: Int64, sentBy owner: Int64, hasSucceeded: Bool = false
  ) throws(SQLiteError) {
    guard let row = try glance(upload), row.hasSession || hasSucceeded, row.owner == owner else { return }
    let insert = try database.statement(
      "INSERT OR REPLACE INTO sent(upload, start, end, key, value) VALUES(?1, ?2, ?3, ?4, ?5)")
    try insert.bind(1, upload)
    try insert.bind(2, range.start)
    try insert.bind(3, range.end)
    try insert.bind(4, range.key)
    try insert.bind(5, range.value)
    try insert.run()
  }

  /// In the order of their starts; last the one that `owner` has under way.
  func ranges(_ upload: Int64, underWayBy owner: Int64?) throws(SQLiteError) -> [SentRange] {
    let select = try database.statement("SELECT start, end, key, value FROM sent WHERE upload = ?1 ORDER BY start")
    defer { select.reset() }
    try select.bind(1, upload)
    var ranges: [SentRange] = []
    while try select.step() {
      ranges.append(
        SentRange(
          start: select.int(0), end: select.int(1), key: select.blob(2) ?? [], value: select.blob(3) ?? []))
    }
    guard let owner else { return ranges }
    if logs[owner] == nil { logs[owner] = log.ranges(of: owner) }
    if let range = logs[owner]?[upload] { ranges.append(range) }
    return ranges
  }
}
