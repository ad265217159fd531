import BlobSQLite
import Blobs

/// The table `process`: the journals that are open, in any process. A row of another table refers to the one that has
/// claimed it. Two journals in one process have two rows, so they respect each other's claims.
final class OwnerTable {
  private let database: Database
  /// The process of this journal.
  let mark: ProcessIdentity
  /// The id of this journal's row; nil: it has claimed nothing yet.
  private(set) var id: Int64?
  /// Owners that were looked up in the current operation; nil for a process that has died.
  private var known: [Int64: ProcessIdentity?] = [:]
  /// Other processes may open this file. On iOS only an app itself opens what is in its own container.
  private let hasOthers: Bool

  init(_ database: Database, _ mark: ProcessIdentity, hasOthers: Bool) {
    (self.database, self.mark, self.hasOthers) = (database, mark, hasOthers)
  }

  /// Must be called inside a transaction. Adds a row for this journal, which `begin` then uses.
  func insert() throws(SQLiteError) -> Int64 {
    let insert = try database.statement("INSERT INTO process(pid, boot, start) VALUES(?1, ?2, ?3)")
    try insert.bind(1, Int64(mark.pid))
    try insert.bind(2, mark.boot)
    try insert.bind(3, Int64(bitPattern: mark.start))
    try insert.run()
    return database.lastInsertedID
  }

  /// The row is committed: this journal may claim.
  func begin(as id: Int64) { self.id = id }

  /// This journal's claims were released.
  func end() { id = nil }

  /// Called at the start of an operation, which looks up each owner only once.
  func forgetLookups() { known = [:] }

  /// The process of an owner; nil if it has died. This journal itself is alive, whatever the system says of its process.
  func live(_ owner: Int64) throws(SQLiteError) -> ProcessIdentity? {
    if owner == id { return mark }
    if let known = known[owner] { return known }
    let select = try database.statement("SELECT pid, boot, start FROM process WHERE id = ?1")
    try select.bind(1, owner)
    let mark = try select.first { ProcessIdentity(row: $0, from: 0) }
    let live = mark.flatMap { $0.isAlive(withOthers: hasOthers) ? $0 : nil }
    known[owner] = .some(live)
    return live
  }

  /// The ids of all owners but this journal.
  func others() throws(SQLiteError) -> [Int64] { try rows().map(\.id).filter { $0 != id } }

  /// The owners whose processes have died.
  func dead() throws(SQLiteError) -> [(id: Int64, process: ProcessIdentity)] {
    try rows().filter { $0.id != id && !$0.process.isAlive(withOthers: hasOthers) }
  }

  /// The highest id that an owner has had. Ids are never reused.
  func latest() throws(SQLiteError) -> Int64? {
    try database.statement("SELECT seq FROM sqlite_sequence WHERE name = 'process'").first { $0.int(0) }
  }

  private func rows() throws(SQLiteError) -> [(id: Int64, process: ProcessIdentity)] {
    let select = try database.statement("SELECT id, pid, boot, start FROM process")
    var rows: [(Int64, ProcessIdentity)] = []
    while try select.step() { rows.append((select.int(0), ProcessIdentity(row: select, from: 1))) }
    return rows
  }
}

extension ProcessIdentity {
  fileprivate init(row: Statement, from column: Int32) {
    self.init(
      pid: Int32(truncatingIfNeeded: row.int(column)), boot: row.text(column + 1) ?? "",
      start: UInt64(bitPattern: row.int(column + 2)))
  }
}
