import BlobSQLite
import Blobs

/// The table `sent`: how far the runs of unfinished uploads have sent bytes, with checksums. A run that is under way has
/// its record in the `SentLog` of its process.
final class SentTable {
  private let database: Database
  private let owners: OwnerTable
  /// The record of this process.
  let log: SentLog
  /// Ranges in progress by owner, as read in the current operation.
  private var underWay: [Int64: [Int64: SentRange]] = [:]

  init(_ database: Database, _ owners: OwnerTable, _ log: SentLog) {
    (self.database, self.owners, self.log) = (database, owners, log)
  }

  /// Called at the start of an operation, which reads the record of each owner only once.
  func forgetLookups() {
    underWay = [:]
    owners.forgetLookups()
  }

  /// Must be called inside a transaction, before the claim ends. Moves this process's record of an upload in progress
  /// into the journal. An upload that did not succeed and has no session starts again, so its record is dropped.
  func keepSent(_ upload: Int64, _ me: Int64, hasSucceeded: Bool = false) throws(SQLiteError) {
    guard let range = log.range(of: upload) else { return }
    try keep(range, of: upload, sentBy: me, hasSucceeded: hasSucceeded)
    log.drop(upload)
  }

  /// Must be called inside a transaction. Stores a range of an upload that `owner` still has claimed.
  func keep(
    _ range: SentRange, of upload: Int64, sentBy owner: Int64, hasSucceeded: Bool = false
  ) throws(SQLiteError) {
    guard let row = try UploadFacts(of: upload, in: database), row.hasSession || hasSucceeded, row.owner == owner else {
      return
    }
    try store(range, of: upload)
  }

  private func store(_ range: SentRange, of upload: Int64) throws(SQLiteError) {
    // A range without a checksum only says how far bytes were sent, including those of an earlier request.
    let insert =
      range.key == SentRange.noKey
      ? try database.statement(
        """
        INSERT INTO sent(upload, start, end, key, value) VALUES(?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET end = max(end, excluded.end), key = excluded.key, value = excluded.value
        """)
      : try database.statement(
        "INSERT OR REPLACE INTO sent(upload, start, end, key, value) VALUES(?1, ?2, ?3, ?4, ?5)")
    try insert.bind(1, upload)
    try insert.bind(2, range.start)
    try insert.bind(3, range.end)
    try insert.bind(4, range.key)
    try insert.bind(5, range.value)
    try insert.run()
  }

  /// A row with this start says that it is unknown how far an upload was sent.
  private static let unknownStart: Int64 = -1
  /// More bytes than a transport hands to a connection before it reports them: a run may end or be killed in between.
  private static let unnoted: Int64 = 16 << 20

  /// Must be called inside a transaction, before the claims of an owner end. The machine went down while the owner was
  /// sending, so its last records may not have reached the disk.
  func forgetLimits(of owner: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      """
      INSERT OR IGNORE INTO sent(upload, start, end, key, value)
      SELECT id, ?2, 0, ?3, ?4 FROM upload INDEXED BY unfinished
      WHERE owner = ?1 AND state <> 2 AND session IS NOT NULL
      """)
    try insert.bind(1, owner)
    try insert.bind(2, Self.unknownStart)
    try insert.bind(3, SentRange.noKey)
    try insert.bind(4, SentRange.noValue)
    try insert.run()
  }

  /// Must be called inside a transaction. Stores the ranges of an upload that another journal has begun. `isWhole`: no more
  /// than these were sent.
  func adopt(_ ranges: [SentRange], of upload: Int64, isWhole: Bool) throws(SQLiteError) {
    let unknown = SentRange(start: Self.unknownStart, end: 0, key: SentRange.noKey, value: SentRange.noValue)
    for range in ranges.filter({ $0.start >= 0 }) + (isWhole ? [] : [unknown]) { try store(range, of: upload) }
  }

  /// No run has sent bytes at or after this offset; nil: unknown. `ranges`: from `ranges(_:underWayBy:)`.
  func sentLimit(
    _ upload: Int64, _ ranges: [SentRange], acknowledged: Int64, underWayBy owner: Int64?
  ) throws(SQLiteError) -> Int64? {
    // The owner has died, and its claims were not released yet.
    if let owner, try owners.live(owner) == nil { return nil }
    let select = try database.statement("SELECT 1 FROM sent WHERE upload = ?1 AND start = ?2")
    try select.bind(1, upload)
    try select.bind(2, Self.unknownStart)
    if try select.first({ $0.int(0) }) != nil { return nil }
    // An earlier version of this program recorded less.
    guard let end = ranges.map(\.end).max() else { return nil }
    return max(acknowledged, end).addingClamped(Self.unnoted)
  }

  /// The ranges in the order of their starts, followed by the range that `owner` has in progress.
  func ranges(_ upload: Int64, underWayBy owner: Int64?) throws(SQLiteError) -> [SentRange] {
    let select = try database.statement(
      "SELECT start, end, key, value FROM sent WHERE upload = ?1 AND start >= 0 ORDER BY start")
    defer { select.reset() }
    try select.bind(1, upload)
    var ranges: [SentRange] = []
    while try select.step() {
      ranges.append(
        SentRange(
          start: select.int(0), end: select.int(1), key: select.blob(2) ?? [], value: select.blob(3) ?? []))
    }
    guard let owner else { return ranges }
    if underWay[owner] == nil { underWay[owner] = log.ranges(of: owner) }
    if let range = underWay[owner]?[upload] { ranges.append(range) }
    return ranges
  }
}
