import BlobSQLite
import Blobs

/// The table `upload`, whose rows are the journal's entries, and `receipt`, `removed` and `finished` beside it. A removed row
/// takes its metadata and its number along.
///
/// The end of a transaction adds the changed totals to `finished`, so all changes are made in `transaction`.
final class UploadTable {
  let database: Database
  let owners: OwnerTable
  let destinations: DestinationTable
  let sent: SentTable
  let contents: SealedTable
  let seals: SealTable
  let unindexed: UnindexedTable
  let twins: TwinTable
  let deleted: DeletedTable
  /// An entry that was created here and has not ended yet.
  struct Fresh {
    var destination: Int64
    var bytes: Int64
    var target: String
    /// Whether the entry has a session or acknowledged bytes. The rows of the others need not be read.
    var isOpen = false
  }
  var fresh: [Int64: Fresh] = [:]
  /// Changes of the current transaction to the totals in `finished`, by destination.
  private var finished: [Int64: (count: Int64, bytes: Int64)] = [:]

  init(_ database: Database, _ owners: OwnerTable, _ destinations: DestinationTable, _ sent: SentTable) {
    (self.database, self.owners, self.destinations, self.sent) = (database, owners, destinations, sent)
    (contents, unindexed) = (SealedTable(database: database), UnindexedTable(database: database))
    (seals, twins) = (SealTable(database: database), TwinTable(database: database))
    deleted = DeletedTable(database: database)
  }

  /// Transactions cannot be nested.
  func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    defer { finished = [:] }
    return try database.transaction { () throws(SQLiteError) in
      let result = try body()
      try settle()
      return result
    }
  }

  /// Adds the transaction's changes to the totals.
  func settle() throws(SQLiteError) {
    for (destination, change) in finished {
      let upsert = try database.statement(
        """
        INSERT INTO finished VALUES(?1, ?2, ?3)
        ON CONFLICT DO UPDATE SET count = count + ?2, bytes = bytes + ?3
        """)
      try upsert.bind(1, destination)
      try upsert.bind(2, change.count)
      try upsert.bind(3, change.bytes)
      try upsert.run()
    }
    finished = [:]
  }

  /// Counts one more upload as done. Must be called inside a transaction, which writes the totals at its end.
  func count(_ destination: Int64, _ bytes: Int64) {
    finished[destination, default: (0, 0)].count += 1
    finished[destination, default: (0, 0)].bytes &+= bytes
  }

  /// An upload that was done no longer is.
  func uncount(_ destination: Int64, _ bytes: Int64) {
    finished[destination, default: (0, 0)].count -= 1
    finished[destination, default: (0, 0)].bytes &-= bytes
  }

  func remove(_ ids: [Int64]) throws(SQLiteError) {
    try transaction { () throws(SQLiteError) in
      for id in ids {
        if let row = try UploadFacts(of: id, in: database) { try remove(id, row) }
      }
    }
  }

  /// Must be called inside a transaction.
  func remove(_ id: Int64, _ row: UploadFacts) throws(SQLiteError) {
    if row.isDone { uncount(row.destination, row.bytes) }
    try removeTraces(id)
    try seals.remove(id)
    try twins.forget(id)
    try deleted.forget(entry: id)
    try database.run("DELETE FROM metadata WHERE upload = ?1", with: id)
    try database.run("DELETE FROM numbered WHERE upload = ?1", with: id)
    try database.run("DELETE FROM unindexed WHERE upload = ?1", with: id)
    try database.run("DELETE FROM upload WHERE id = ?1", with: id)
    try database.run("UPDATE removed SET id = ?1 WHERE id < ?1", with: id)
  }

  /// Removes the entry of a file that was refused under its name, or not begun, and is sent under another one now. Must be
  /// called inside a transaction. `key`: of the old name; nil: there is none.
  func removeUnsent(_ key: String?, _ source: BytePath) throws(SQLiteError) {
    guard let key, let old = try entry(key, source), [.refused, .intent].contains(old.state), old.session == nil,
      !old.isLeftover, !old.isSuperseded, old.owner == nil, let row = try UploadFacts(of: old.id, in: database)
    else { return }
    try remove(old.id, row)
  }

  /// Removes receipts, records of sent bytes, and what is known of a ciphertext.
  func removeTraces(_ id: Int64) throws(SQLiteError) {
    try database.run("DELETE FROM receipt WHERE upload = ?1", with: id)
    try database.run("DELETE FROM sent WHERE upload = ?1", with: id)
    try database.run("DELETE FROM sealed WHERE upload = ?1", with: id)
    sent.log.drop(id)
  }

  /// Must be called inside a transaction. Copies a row that has a session to a leftover row, with its receipts: the
  /// session stays known until it was deleted at the server, whatever happens to the first row.
  func setAside(_ id: Int64, as left: Int64, _ owner: Int64?, _ now: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      """
      INSERT INTO upload(id, state, owner, updated, target, destination, length, acknowledged, part_size, created, source,
      path, version, instance, content_type, session)
      SELECT ?2, 4, ?3, ?4, target || ?5, destination, length, acknowledged, part_size, created, source,
      path, version, instance, content_type, session FROM upload WHERE id = ?1
      """)
    try insert.bind(1, id)
    try insert.bind(2, left)
    try insert.bind(3, owner)
    try insert.bind(4, now)
    try insert.bind(5, JournalEntry.mark(ofLeftover: left))
    try insert.run()
    let move = try database.statement("UPDATE receipt SET upload = ?2 WHERE upload = ?1")
    try move.bind(1, id)
    try move.bind(2, left)
    try move.run()
  }

  /// Keeps the entry's session as a leftover, which is deleted at the server later.
  func giveUp(_ id: Int64, _ key: String) throws(SQLiteError) {
    guard let row = try UploadFacts(of: id, in: database) else { return }
    guard row.hasSession else { return try remove(id, row) }
    let leave = try database.statement("UPDATE upload SET state = 4, location = NULL, target = ?2 WHERE id = ?1")
    try leave.bind(1, id)
    try leave.bind(2, key + JournalEntry.mark(ofLeftover: id))
    try leave.run()
  }

  /// An id that no row has or had.
  func nextID() throws(SQLiteError) -> Int64 {
    let select = try database.statement(
      "SELECT max(ifnull((SELECT max(id) FROM upload), 0), (SELECT id FROM removed)) + 1")
    return try select.first { $0.int(0) } ?? 1
  }

  func keep(_ receipt: PartReceipt, _ id: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      "INSERT OR REPLACE INTO receipt(upload, number, start, held, state) VALUES(?1, ?2, ?3, ?4, ?5)")
    try insert.bind(1, id)
    try insert.bind(2, Int64(receipt.number))
    try insert.bind(3, receipt.start)
    try insert.bind(4, receipt.held)
    try insert.bind(5, receipt.state.isEmpty ? nil : JSONColumn.encode(receipt.state))
    try insert.run()
  }
}

/// The properties of a row that updates depend on.
struct UploadFacts {
  var destination: Int64
  var isDone: Bool
  var owner: Int64?
  var hasSession: Bool
  var hasLength: Bool
  /// The server has given this upload its own URL, other than the target and the target with a version.
  var hasOwnURL: Bool
  /// As `JournalEntry.isSuperseded`.
  var isSuperseded: Bool
  /// The total length; if it is unknown, the acknowledged bytes.
  var bytes: Int64

  var isFree: Bool { owner == nil }
}

extension UploadFacts {
  /// nil: there is no such row.
  init?(of id: Int64, in database: Database) throws(SQLiteError) {
    let select = try database.statement(
      """
      SELECT destination, state, owner, ifnull(length, acknowledged), session IS NOT NULL, length IS NOT NULL,
      ifnull(location <> '' AND instr(location, '#') = 0
      AND location <> substr(target, 1, instr(target || '#', '#') - 1), 0), state IN (0, 4) AND location IS NOT NULL
      FROM upload WHERE id = ?1
      """)
    try select.bind(1, id)
    let found = try select.first { row in
      UploadFacts(
        destination: row.int(0), isDone: row.int(1) == 2, owner: row.intOrNil(2), hasSession: row.int(4) != 0,
        hasLength: row.int(5) != 0, hasOwnURL: row.int(6) != 0, isSuperseded: row.int(7) != 0, bytes: row.int(3))
    }
    guard let found else { return nil }
    self = found
  }
}

extension Database {
  /// Runs a statement with one parameter.
  func run(_ text: StaticString, with number: Int64) throws(SQLiteError) {
    let statement = try statement(text)
    try statement.bind(1, number)
    try statement.run()
  }
}
