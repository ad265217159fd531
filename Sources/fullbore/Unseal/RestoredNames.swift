import BlobCrypto
import BlobSQLite
import BlobUpload
import Blobs
import Synchronization

/// The names that the indexes tell, in a temporary table of SQLite, which goes to a temporary file when there are many.
/// Every call may block.
final class RestoredNames: @unchecked Sendable {
  struct Name: Sendable, Hashable {
    /// The path of the sealed file.
    var sealed: BytePath
    /// The path that it would have if its name were not sealed.
    var plain: BytePath
    var modified: Int64?
  }

  // `lock` guards the connection, which is used by one thread at a time.
  private let lock = Mutex(())
  private let database: Database

  init() throws(BlobError) {
    do throws(SQLiteError) {
      database = try Database(":memory:")
      try database.execute(
        """
        PRAGMA temp_store=FILE;
        CREATE TEMP TABLE name(sealed BLOB PRIMARY KEY, plain BLOB, modified INT, written INT, found INT) WITHOUT ROWID;
        """)
    } catch { throw Self.failure(error) }
  }

  /// Adds what an index in `folder` says of the files below that. Throws if it is none, or not as it should be; what stands
  /// before the fault is taken. Also throws if a name cannot be given to a file here, with all other names taken.
  func add(
    _ index: any BlobSource, in folder: BytePath, _ identities: [SealIdentity], _ cancel: Cancellation
  ) throws(BlobError) {
    var (refused, example): (Int, BytePath) = (0, "")
    try NamesIndex.read(UnsealedSource(index, with: identities), cancel) { head, found throws(BlobError) in
      let entries = found.filter { canBeRestored($0.plain, in: folder) }
      if entries.count < found.count, let first = found.first(where: { !canBeRestored($0.plain, in: folder) }) {
        (refused, example) = (refused + found.count - entries.count, first.plain)
      }
      try with { database throws(SQLiteError) in
        try database.transaction { () throws(SQLiteError) in
          // The same file may be in several indexes. The newest one that has a time has that of the last version.
          let insert = try database.statement(
            """
            INSERT INTO name VALUES(?1, ?2, ?3, ?4, 0) ON CONFLICT DO UPDATE SET
              modified = CASE WHEN ?4 > written THEN coalesce(?3, modified) ELSE coalesce(modified, ?3) END,
              written = max(written, ?4)
            """)
          for entry in entries {
            try insert.bind(1, folder.appending(entry.sealed).bytes)
            try insert.bind(2, folder.appending(entry.plain).bytes)
            try insert.bind(3, entry.modified)
            try insert.bind(4, head.written)
            try insert.run()
          }
        }
      }
      return true
    }
    if refused == 0 { return }
    throw BlobError(
      .unsupported,
      "an index of sealed names has \(Quantity.plural(refused, "name")) that no file here can have, like \(example); the others "
        + "are taken")
  }

  private func canBeRestored(_ sealed: BytePath, in folder: BytePath) -> Bool {
    let path = FileRestore.path(of: folder.appending(sealed))
    return path.components.first != RestoreState.name && path.components.allSatisfy { $0.isOneName }
  }

  /// The name of a sealed file, which is noted as found; nil: no index has it.
  func name(of sealed: BytePath) throws(BlobError) -> Name? {
    try with { database throws(SQLiteError) in
      let select = try database.statement("SELECT plain, modified FROM name WHERE sealed = ?1")
      try select.bind(1, sealed.bytes)
      let name = try select.first { Name(sealed: sealed, plain: BytePath($0.blob(0) ?? []), modified: $0.intOrNil(1)) }
      guard let name else { return nil }
      let note = try database.statement("UPDATE name SET found = 1 WHERE sealed = ?1")
      try note.bind(1, sealed.bytes)
      try note.run()
      return name
    }
  }

  /// The next of the names that were not found, in order of the sealed paths; empty: there are no more.
  func missing(after last: BytePath) throws(BlobError) -> [Name] {
    try with { database throws(SQLiteError) in
      let select = try database.statement(
        "SELECT sealed, plain FROM name WHERE found = 0 AND sealed > ?1 ORDER BY sealed LIMIT 500")
      defer { select.reset() }
      try select.bind(1, last.bytes)
      var names: [Name] = []
      while try select.step() {
        names.append(Name(sealed: BytePath(select.blob(0) ?? []), plain: BytePath(select.blob(1) ?? [])))
      }
      return names
    }
  }

  private func with<Result: Sendable>(
    _ body: (Database) throws(SQLiteError) -> Result
  ) throws(BlobError) -> Result {
    do throws(SQLiteError) { return try lock.withLock { _ throws(SQLiteError) in try body(database) } } catch {
      throw Self.failure(error)
    }
  }

  private static func failure(_ error: SQLiteError) -> BlobError {
    BlobError(.io, "keep the names of the files: \(error)", cause: error)
  }
}
