import BlobSQLite
import Platform
import Testing

@Suite struct DatabaseTests {
  let scratch = Scratch()

  @Test func foldersAndFilesAreMadeForTheirOwnerAlone() throws {
    let database = try open("/a/b/db")
    try database.execute("CREATE TABLE item(id)")
    for folder in ["a", "a/b"] { #expect(scratch.mode(folder) == 0o700) }
    for name in ["db", "db-wal", "db-shm"] { #expect(scratch.mode("a/b/" + name) == 0o600) }
  }

  @Test func aFileOthersCouldReadIsClosedToThem() throws {
    scratch.write("", mode: 0o644)
    _ = try open()
    #expect(scratch.mode("db") == 0o600)
  }

  @Test func writesAheadAndSyncsAtCheckpointsOnly() throws {
    let database = try open()
    try database.migrate(to: 1) { _ throws(SQLiteError) in }
    #expect(try database.statement("PRAGMA journal_mode").first { $0.text(0) } == "wal")
    #expect(try database.statement("PRAGMA synchronous").first { $0.int(0) } == 1)
    #expect(try database.statement("PRAGMA wal_autocheckpoint").first { $0.int(0) } == 1000)
  }

  @Test func noTemporaryFileIsMadeToTakeBackAPart() throws {
    let database = try open()
    try database.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, value BLOB)")
    try database.transaction { () throws(SQLiteError) in
      for id in 1...1000 { try database.execute("INSERT INTO item VALUES(\(id), zeroblob(1000))") }
    }
    try database.transaction { () throws(SQLiteError) in
      try database.execute("SAVEPOINT part")
      try database.execute("UPDATE item SET value = zeroblob(999)")
      #expect(openFiles().filter { $0.contains("etilqs") } == [])
      try database.execute("ROLLBACK TO part")
    }
    #expect(try database.statement("SELECT count(*) FROM item WHERE length(value) = 1000").first { $0.int(0) } == 1000)
  }

  /// The open files of this process, including deleted ones.
  private func openFiles() -> [String] {
    (0..<256).compactMap { number in
      var name = [UInt8](repeating: 0, count: 4096)
      let count = name.withUnsafeMutableBytes { bytes in
        bytes.withMemoryRebound(to: CChar.self) { readlink("/proc/self/fd/\(number)", $0.baseAddress!, $0.count) }
      }
      return count > 0 ? String(decoding: name[..<count], as: UTF8.self) : nil
    }
  }

  @Test func aCommittedRowIsThereAfterClosing() throws {
    try { try open().execute("CREATE TABLE item(id); INSERT INTO item VALUES(5)") }()
    #expect(try open().statement("SELECT id FROM item").first { $0.int(0) } == 5)
  }

  @Test func aTransactionThatThrowsLeavesNothing() throws {
    let database = try open()
    try database.execute("CREATE TABLE item(id PRIMARY KEY)")
    _ = #expect(throws: SQLiteError.self) { try fill(database, [1, 2, 1]) }
    #expect(try count(database) == 0)
    try fill(database, [1, 2, 3])
    #expect(try count(database) == 3)
  }

  @Test func aLockHeldTooLongIsBusy() throws {
    let holder = try open()
    let other = try open(busyTimeout: .milliseconds(30))
    try holder.execute("CREATE TABLE item(id PRIMARY KEY); BEGIN IMMEDIATE")
    let error = #expect(throws: SQLiteError.self) { try fill(other, [1]) }
    #expect(error?.isBusy == true)
    #expect(error?.description.contains(scratch.file) == true)
    try holder.execute("COMMIT")
    try fill(other, [1])
    #expect(try count(holder) == 1)
  }

  @Test func migratesOnceAndRemembers() throws {
    var found: [Int64] = []
    for version in [1, 1, 3] as [Int64] {
      try open().migrate(to: version) { found.append($0) }
      #expect(try open().userVersion() == version)
    }
    #expect(found == [0, 1])
  }

  @Test func aNewerFormatIsRefused() throws {
    try open().migrate(to: 9) { _ in }
    let error = #expect(throws: SQLiteError.self) { try migrate(open(), to: 2) }
    #expect(error?.message.contains("version 9") == true)
    #expect(try open().userVersion() == 9)
  }

  @Test func manyMayMakeTheSameFileAtOnce() async throws {
    let path = scratch.file
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let database = try Database(.init(path))
          try database.migrate(to: 1) { _ throws(SQLiteError) in try database.execute("CREATE TABLE item(id)") }
          try database.execute("INSERT INTO item VALUES(1)")
        }
      }
      try await group.waitForAll()
    }
    #expect(try count(open()) == 8)
  }

  @Test func aFileThatIsNoDatabaseIsRefusedByName() throws {
    scratch.write(String(repeating: "this is some text, not a journal\n", count: 100))
    let error = #expect(throws: SQLiteError.self) { try openAndRead(scratch.file) }
    #expect(error?.description.contains(scratch.file) == true)
    #expect(error?.description.contains("not a database") == true)
  }

  @Test func aPathThatCannotBeIsRefusedByName() throws {
    let error = #expect(throws: SQLiteError.self) { try openAndRead("/dev/null/folder/db") }
    #expect(error?.description.contains("/dev/null/folder/db: Not a directory") == true)
  }

  @Test(.enabled(if: geteuid() != 0, "root may write anywhere")) func aFolderWithoutPermissionIsRefused() throws {
    chmod(scratch.path, 0o500)
    defer { chmod(scratch.path, 0o700) }
    let error = #expect(throws: SQLiteError.self) { try openAndRead(scratch.file) }
    #expect(error?.message == "Permission denied")
  }

  @Test func aFileThatIsNoDatabaseKeepsItsPermissions() throws {
    scratch.write(String(repeating: "holiday ", count: 1000), mode: 0o664)
    #expect(throws: SQLiteError.self) { try Database(.init(scratch.file)) }
    #expect(scratch.mode("db") == 0o664)
  }

  @Test func aFolderIsRefusedByNameAndKeepsItsPermissions() throws {
    #expect(chmod(scratch.path, 0o755) == 0)
    let error = #expect(throws: SQLiteError.self) { try Database(.init(scratch.path)) }
    #expect(error?.description.contains(scratch.path) == true)
    #expect(scratch.mode("") == 0o755)
  }

  @Test func theLogAndTheIndexAreClosedToOthersToo() throws {
    let first = try Database(.init(scratch.file))
    try first.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
    for name in ["db", "db-wal", "db-shm"] { #expect(chmod("\(scratch.path)/\(name)", 0o644) == 0) }
    try Database(.init(scratch.file)).execute("INSERT INTO item DEFAULT VALUES")
    for name in ["db", "db-wal", "db-shm"] { #expect(scratch.mode(name) == 0o600) }
  }

  @Test func aLiteralIsPreparedOnceAndComesBackReset() throws {
    let database = try Database(.init(scratch.file))
    var kept: [Statement] = []
    for _ in 0..<2 {
      let statement = try database.statement("SELECT 1 UNION SELECT 2")
      let isThere = try statement.step()
      #expect(isThere && statement.int(0) == 1)
      kept.append(statement)
    }
    #expect(kept[0] === kept[1])
  }

  @Test(arguments: ["", "/nowhere\0.sqlite"]) func aPathThatNamesNothingIsRefused(_ path: String) {
    #expect(throws: SQLiteError.self) { try Database(.init(path)) }
  }

  private func open(_ name: String = "/db", busyTimeout: Duration = .seconds(10)) throws -> Database {
    try Database(.init(scratch.path + name), busyTimeout: busyTimeout)
  }
}

private func fill(_ database: Database, _ ids: [Int64]) throws(SQLiteError) {
  try database.transaction { () throws(SQLiteError) in
    for id in ids {
      let insert = try database.statement("INSERT INTO item VALUES(?1)")
      try insert.bind(1, id)
      try insert.run()
    }
  }
}

private func count(_ database: Database) throws(SQLiteError) -> Int64? {
  try database.statement("SELECT count(*) FROM item").first { $0.int(0) }
}

private func migrate(_ database: Database, to version: Int64) throws(SQLiteError) {
  try database.migrate(to: version) { _ in }
}

private func openAndRead(_ path: String) throws(SQLiteError) {
  _ = try Database(.init(path)).userVersion()
}
