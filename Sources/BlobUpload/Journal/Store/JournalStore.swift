import BlobSQLite
import Blobs
import Platform

/// The journal's file: its tables, and what concerns several of them. All calls block; `Journal` makes them on its own
/// thread.
final class JournalStore {
  /// Opened for reading: claims of processes that have died stay in the file, and count as released.
  private let isReading: Bool
  let owners: OwnerTable
  let uploads: UploadTable
  let replaced: ReplacedUploads
  let claims: UploadClaims
  let notes: NoteWriter
  let listings: ListingTable
  let metadata: MetadataTable
  let numbers: NumberTable
  let compared: ComparedTable
  let hosts: HostTable
  let jobs: JobTable

  var database: Database { uploads.database }

  convenience init(at path: BytePath, as mark: ProcessIdentity, _ log: SentLog) throws(SQLiteError) {
    let database = try Database(path, withTables: ["process", "destination", "upload"])
    self.init(database, OwnerTable(database, mark, hasOthers: path.isShared), log, isReading: false)
    try migrate()
  }

  /// nil: the journal has another format and must be opened for writing.
  convenience init?(reading path: BytePath, _ log: SentLog) throws(SQLiteError) {
    let database = try Database(reading: path)
    if try database.userVersion() != Self.schemaVersion { return nil }
    self.init(database, OwnerTable(database, .current, hasOthers: path.isShared), log, isReading: true)
  }

  private init(_ database: Database, _ owners: OwnerTable, _ log: SentLog, isReading: Bool) {
    (self.owners, self.isReading) = (owners, isReading)
    uploads = UploadTable(database, owners, DestinationTable(database), SentTable(database, owners, log))
    let rows = NamedRows(uploads)
    replaced = ReplacedUploads(uploads)
    claims = UploadClaims(uploads, replaced, rows)
    notes = NoteWriter(uploads, replaced, rows)
    listings = ListingTable(database: database, destinations: uploads.destinations, owners: owners)
    (metadata, numbers) = (MetadataTable(database: database), NumberTable(database: database))
    compared = ComparedTable(database: database)
    (hosts, jobs) = (HostTable(database: database), JobTable(database: database))
  }

  // If a journal is released without `close`, later journals of this process should not find its claims taken.
  deinit {
    if owners.id == nil { return }
    // `deinit` may run on any thread, so it must not wait for long.
    database.wait(atMost: .milliseconds(100))
    try? unregister()  // otherwise they are released when this process ends
  }

  /// This journal's id as an owner. The first call also releases the claims of processes that have died.
  func register() throws(SQLiteError) -> Int64 {
    if let id = owners.id { return id }
    try releaseDeadOwners()
    let id: Int64 = try uploads.transaction { () throws(SQLiteError) in
      let id = try owners.insert()
      let isAlone = try database.statement("SELECT NOT EXISTS(SELECT 1 FROM upload) AND count(*) = 1 FROM process")
      replaced.targets.areAll = try isAlone.first { $0.int(0) } == 1
      return id
    }
    uploads.sent.log.start(as: id)
    owners.begin(as: id)
    return id
  }

  /// Releases this journal's claims.
  func unregister() throws(SQLiteError) {
    guard let id = owners.id else { return }
    try uploads.transaction { () throws(SQLiteError) in try forget(owner: id) }
    uploads.sent.log.remove()
    owners.end()
  }

  /// Moves the records of dead processes into the journal, and then releases their claims.
  func releaseDeadOwners() throws(SQLiteError) {
    if isReading { return }
    let dead = try owners.dead()
    if dead.isEmpty { return }
    try uploads.transaction { () throws(SQLiteError) in
      for (id, process) in dead { try forget(owner: id, process) }
    }
    for (id, _) in dead { uploads.sent.log.remove(of: id) }
  }

  /// `dead`: the process, if it has died.
  private func forget(owner id: Int64, _ dead: ProcessIdentity? = nil) throws(SQLiteError) {
    let sent = uploads.sent
    for (upload, range) in sent.log.ranges(of: id) { try sent.keep(range, of: upload, sentBy: id) }
    if let dead, !dead.isOfThisBoot { try sent.forgetLimits(of: id) }
    try database.run(
      "UPDATE upload INDEXED BY unfinished SET owner = NULL WHERE owner = ?1 AND state <> 2", with: id)
    try database.run("UPDATE listing SET owner = NULL WHERE owner = ?1", with: id)
    try database.run("DELETE FROM process WHERE id = ?1", with: id)
  }
}

/// Seconds since 1970.
package func currentSeconds() -> Int64 { Int64(time(nil)) }
