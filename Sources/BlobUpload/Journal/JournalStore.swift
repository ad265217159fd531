import BlobSQLite
import Blobs
import Platform

/// The journal's tables and their operations. All calls block; `Journal` makes them on its own thread.
///
/// Each open store has its own row in `process`, so that two journals in one process respect each other's claims.
final class JournalStore {
  let database: Database
  let mark: ProcessIdentity
  let log: SentLog
  /// The id of this store's row in `process`; the first claim creates the row.
  private(set) var ownerID: Int64?
  var destinations: [Int64: JournalDestination] = [:]
  /// Entries that were created here and have no notes yet: their rows need not be read.
  var fresh: [Int64: (destination: Int64, bytes: Int64, target: String)] = [:]
  /// This store has claimed rows of a database that have names.
  var claimsNamedRows = false
  /// The targets of this store's new entries.
  var targets = ClaimedTargets()
  /// Insert statements by their number of rows.
  var inserts: [Int: Statement] = [:]
  /// Changes of the current transaction to the totals in `finished`, by destination.
  var finished: [Int64: (count: Int64, bytes: Int64)] = [:]
  /// Owners looked up in the current operation; nil for a process that has died.
  var owners: [Int64: ProcessIdentity?] = [:]
  /// Ranges in progress by owner, as read in the current operation.
  var logs: [Int64: [Int64: SentRange]] = [:]

  /// Other processes may open this file. On iOS only an app itself opens what is in its own container.
  private let hasOthers: Bool

  /// Opened for reading: claims of processes that have died stay in the file, and count as released.
  let isReading: Bool

  init(at path: BytePath, as mark: ProcessIdentity, _ log: SentLog) throws(SQLiteError) {
    self.mark = mark
    self.log = log
    isReading = false
    hasOthers = path.isShared
    database = try Database(path, withTables: ["process", "destination", "upload"])
    try migrate()
  }

  /// nil: the journal has another format and must be opened for writing.
  init?(reading path: BytePath, _ log: SentLog) throws(SQLiteError) {
    mark = .current
    self.log = log
    isReading = true
    hasOthers = path.isShared
    database = try Database(reading: path)
    if try database.userVersion() != Self.schemaVersion { return nil }
  }

  // If a journal is released without `close`, later journals of this process should not find its claims taken.
  deinit {
    if ownerID == nil { return }
    // `deinit` may run on any thread, so it must not wait for long.
    database.wait(atMost: .milliseconds(100))
    try? unregister()  // otherwise they are released when this process ends
  }

  /// Every change to the database is made in such a transaction.
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
  }

  /// This store's id as an owner. The first call also releases the claims of processes that have died.
  func register() throws(SQLiteError) -> Int64 {
    if let ownerID { return ownerID }
    try buryDead()
    let id: Int64 = try transaction { () throws(SQLiteError) in
      let insert = try database.statement("INSERT INTO process(pid, boot, start) VALUES(?1, ?2, ?3)")
      try insert.bind(1, Int64(mark.pid))
      try insert.bind(2, mark.boot)
      try insert.bind(3, Int64(bitPattern: mark.start))
      try insert.run()
      let isAlone = try database.statement("SELECT NOT EXISTS(SELECT 1 FROM upload) AND count(*) = 1 FROM process")
      targets.areAll = try isAlone.first { $0.int(0) } == 1
      return database.lastInsertedID
    }
    log.start(as: id)
    ownerID = id
    return id
  }

  /// Releases this store's claims.
  func unregister() throws(SQLiteError) {
    guard let id = ownerID else { return }
    try transaction { () throws(SQLiteError) in try forget(owner: id) }
    log.remove()
    ownerID = nil
  }

  /// Moves the records of dead processes into the journal, and then releases their claims.
  func buryDead() throws(SQLiteError) {
    if isReading { return }
    let dead = try processes().filter { $0.0 != ownerID && !$0.1.isAlive(withOthers: hasOthers) }
    if dead.isEmpty { return }
    try transaction { () throws(SQLiteError) in for (id, mark) in dead { try forget(owner: id, mark) } }
    for (id, _) in dead { log.remove(of: id) }
  }

  /// Called at the start of an operation, which looks up each owner only once.
  func forgetLookups() { (owners, logs) = ([:], [:]) }

  /// The process of an owner; nil if it has died. This store itself is alive, whatever the system says of its process.
  func liveOwner(_ id: Int64) throws(SQLiteError) -> ProcessIdentity? {
    if id == ownerID { return mark }
    if let known = owners[id] { return known }
    let select = try database.statement("SELECT pid, boot, start FROM process WHERE id = ?1")
    try select.bind(1, id)
    let mark = try select.first { ProcessIdentity(row: $0, from: 0) }
    let live = mark.flatMap { $0.isAlive(withOthers: hasOthers) ? $0 : nil }
    owners[id] = .some(live)
    return live
  }

  private func processes() throws(SQLiteError) -> [(Int64, ProcessIdentity)] {
    let select = try database.statement("SELECT id, pid, boot, start FROM process")
    var rows: [(Int64, ProcessIdentity)] = []
    while try select.step() { rows.append((select.int(0), ProcessIdentity(row: select, from: 1))) }
    return rows
  }

  /// `dead`: the process, if it has died.
  private func forget(owner id: Int64, _ dead: ProcessIdentity? = nil) throws(SQLiteError) {
    for (upload, range) in log.ranges(of: id) { try keep(range, of: upload, sentBy: id) }
    if let dead, !dead.isOfThisBoot { try forgetLimits(of: id) }
    try run("UPDATE upload INDEXED BY unfinished SET owner = NULL WHERE owner = ?1 AND state <> 2", with: id)
    try run("UPDATE listing SET owner = NULL WHERE owner = ?1", with: id)
    try run("DELETE FROM process WHERE id = ?1", with: id)
  }
}

extension ProcessIdentity {
  fileprivate init(row: Statement, from column: Int32) {
    self.init(
      pid: Int32(truncatingIfNeeded: row.int(column)), boot: row.text(column + 1) ?? "",
      start: UInt64(bitPattern: row.int(column + 2)))
  }
}

/// Seconds since 1970.
package func currentSeconds() -> Int64 { Int64(time(nil)) }
