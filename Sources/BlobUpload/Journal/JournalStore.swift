import BlobSQLite
import Blobs
import Platform

/// The journal's tables and what is done to them. It blocks: the `Journal` calls it on its own thread.
///
/// One process row stands for each open store, so that two journals in one process leave each other's claims alone.
final class JournalStore {
  let database: Database
  let mark: ProcessMark
  let log: SentLog
  /// This store's row in `process`; made with the first claim.
  private(set) var ownerID: Int64?
  var destinations: [Int64: JournalDestination] = [:]
  /// Entries made here and not ended yet, of which nothing else was noted: a glance at the row would tell no more.
  var fresh: [Int64: (destination: Int64, bytes: Int64, target: String)] = [:]
  /// Where this store's new entries go.
  var targets = ClaimedTargets()
  /// For so many new rows at once.
  var inserts: [Int: Statement] = [:]
  /// What the current transaction adds to the counts of what is done, by destination.
  var finished: [Int64: (count: Int64, bytes: Int64)] = [:]
  /// Owners looked up in the current operation; nil for the dead.
  var owners: [Int64: ProcessMark?] = [:]
  /// What owners have under way, as read in the current operation.
  var logs: [Int64: [Int64: SentRange]] = [:]

  /// Nothing can be written: claims of processes that have died stay in the file, and count as given up.
  let isReading: Bool

  init(at path: BytePath, as mark: ProcessMark, _ log: SentLog) throws(SQLiteError) {
    self.mark = mark
    self.log = log
    isReading = false
    database = try Database(path)
    try migrate()
  }

  /// nil: its format is another one, so that it must be opened to be written.
  init?(reading path: BytePath, _ log: SentLog) throws(SQLiteError) {
    mark = .current
    self.log = log
    isReading = true
    database = try Database(reading: path)
    if try database.userVersion() != Self.schemaVersion { return nil }
  }

  // A journal dropped without `close`: no later one in this process shall find its claims taken.
  deinit {
    if ownerID == nil { return }
    // On whatever thread drops it: not for long.
    database.wait(atMost: .milliseconds(100))
    try? unregister()  // else they are free when this process ends
  }

  /// Every change is made in one of these.
  func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    defer { finished = [:] }
    return try database.transaction { () throws(SQLiteError) in
      let result = try body()
      try settle()
      return result
    }
  }

  /// Writes what the transaction has done to the counts.
  private func settle() throws(SQLiteError) {
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

  /// This store's id as an owner. At its first use the claims of processes that have died are given up.
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

  /// Gives up this store's claims.
  func unregister() throws(SQLiteError) {
    guard let id = ownerID else { return }
    try transaction { () throws(SQLiteError) in try forget(owner: id) }
    log.remove()
    ownerID = nil
  }

  /// Gives up the claims of processes that have died, once what they had under way is kept.
  func buryDead() throws(SQLiteError) {
    if isReading { return }
    let dead = try processes().filter { !$0.1.isAlive }
    if dead.isEmpty { return }
    try transaction { () throws(SQLiteError) in for (id, mark) in dead { try forget(owner: id, mark) } }
    for (id, _) in dead { log.remove(of: id) }
  }

  /// At the start of an operation: what it looks up of owners, it looks up once.
  func forgetLookups() { (owners, logs) = ([:], [:]) }

  /// The process behind an owner; nil when it has died.
  func liveOwner(_ id: Int64) throws(SQLiteError) -> ProcessMark? {
    if let known = owners[id] { return known }
    let select = try database.statement("SELECT pid, boot, start FROM process WHERE id = ?1")
    try select.bind(1, id)
    let mark = try select.first { ProcessMark(row: $0, from: 0) }
    let live = mark.flatMap { $0.isAlive ? $0 : nil }
    owners[id] = .some(live)
    return live
  }

  private func processes() throws(SQLiteError) -> [(Int64, ProcessMark)] {
    let select = try database.statement("SELECT id, pid, boot, start FROM process")
    var rows: [(Int64, ProcessMark)] = []
    while try select.step() { rows.append((select.int(0), ProcessMark(row: select, from: 1))) }
    return rows
  }

  /// `dead`: the process, where it has died.
  private func forget(owner id: Int64, _ dead: ProcessMark? = nil) throws(SQLiteError) {
    for (upload, range) in log.ranges(of: id) { try keep(range, of: upload, sentBy: id) }
    if let dead, !dead.isOfThisBoot { try forgetLimits(of: id) }
    try run("UPDATE upload INDEXED BY unfinished SET owner = NULL WHERE owner = ?1 AND state <> 2", with: id)
    try run("UPDATE listing SET owner = NULL WHERE owner = ?1", with: id)
    try run("DELETE FROM process WHERE id = ?1", with: id)
  }
}

extension ProcessMark {
  fileprivate init(row: Statement, from column: Int32) {
    self.init(
      pid: Int32(truncatingIfNeeded: row.int(column)), boot: row.text(column + 1) ?? "",
      start: UInt64(bitPattern: row.int(column + 2)))
  }
}

/// Seconds since 1970.
func currentSeconds() -> Int64 { Int64(time(nil)) }
