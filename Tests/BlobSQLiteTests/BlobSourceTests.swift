import BlobSQLite
import BlobTesting
import Blobs
import Testing

/// BLOBs as sources.
@Suite struct BlobSourceTests {
  private let album = Album()

  private static let fixtures: [SourceFixture] = [0, 1, 4096, 300_001].flatMap { (length: Int64) -> [SourceFixture] in
    let pattern = PatternSource(length: length, seed: 5)
    return [
      SourceFixture("a BLOB of \(length)", like: pattern) { try Album().added(pattern).source(versioned: true) },
      SourceFixture("a BLOB of \(length) without a version", like: pattern) {
        try Album().added(pattern).source(versioned: false)
      },
      SourceFixture("\(length) bytes in chunks", like: pattern) {
        try Album().chunked(pattern, of: 70_000).chunks(versioned: true)
      },
      SourceFixture("\(length) bytes in chunks of one", like: pattern) {
        try Album().chunked(pattern, of: length > 5000 ? 9973 : 1).chunks(versioned: false)
      },
    ]
  }

  @Test(arguments: fixtures, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  @Test(arguments: [true, false])
  func aRowChangedMeanwhileIsReadAsItWasAndReportedAsChanged(_ versioned: Bool) throws {
    let pattern = PatternSource(length: 500_000, seed: 1)
    try album.added(pattern)
    let reader = try album.source(versioned: versioned).open(at: 0, Cancellation())
    let first = try read(reader, 200_000)
    try album.execute("UPDATE photo SET data = randomblob(500000), version = version + 1")
    #expect(try first + read(reader, 300_000) == pattern.bytes(count: 500_000))
    let error = #expect(throws: BlobError.self) { try reader.finish() }
    #expect(error?.code == .changed)
  }

  @Test func aRowDeletedMeanwhileIsReadToItsEndAndReportedAsDeleted() throws {
    let pattern = PatternSource(length: 500_000, seed: 1)
    try album.added(pattern)
    let reader = try album.source(versioned: true).open(at: 0, Cancellation())
    let first = try read(reader, 200_000)
    try album.execute("DELETE FROM photo")
    try album.execute("VACUUM")
    #expect(try first + read(reader, 300_000) == pattern.bytes(count: 500_000))
    let error = #expect(throws: BlobError.self) { try reader.finish() }
    #expect(error?.code == .changed && error?.message.contains("deleted") == true)
    let gone = #expect(throws: BlobError.self) { try album.source(versioned: true).info(Cancellation()) }
    #expect(gone?.code == .notFound)
  }

  /// Only rows of a moderate size with a version are opened at any offset in a short time.
  @Test func saysWhetherItIsSlowToSeek() throws {
    let (small, large) = (PatternSource(length: 70_000), PatternSource(length: 9 << 20))
    _ = try album.added(small).added(large).chunked(large, of: 1 << 20)
    func isSlow(_ source: any BlobSource) throws -> Bool {
      try source.info(Cancellation()).isSlowToSeek
    }
    #expect(try !isSlow(album.source(versioned: true)) && isSlow(album.source(versioned: false)))
    #expect(try isSlow(album.source(versioned: true, row: 2)))
    #expect(try !isSlow(album.chunks(versioned: true)) && isSlow(album.chunks(versioned: false)))
  }

  @Test(arguments: [true, false])
  func changesOfOtherRowsDoNotAffectAReader(_ versioned: Bool) throws {
    let pattern = PatternSource(length: 200_000, seed: 1)
    try album.added(PatternSource(length: 100_000)).added(pattern)
    let source = album.source(versioned: versioned, row: 2)
    let reader = try source.open(at: 0, Cancellation())
    try album.execute("DELETE FROM photo WHERE id = 1")
    try album.execute("VACUUM")
    #expect(try read(reader, 200_000) == pattern.bytes(count: 200_000))
    try reader.finish()
    #expect(try source.info(Cancellation()) == reader.info)
  }

  @Test func aResumeOfAnotherVersionIsRefused() throws {
    try album.added(PatternSource(length: 100_000))
    let source = album.source(versioned: false)
    let version = try source.info(Cancellation()).validator
    try album.execute("UPDATE photo SET data = zeroblob(100000)")
    let error = #expect(throws: BlobError.self) {
      try BlobSlice(source, start: 50_000, validator: version).open(Cancellation())
    }
    #expect(error?.code == .changed)
  }

  @Test(arguments: [
    ("photo", "nothing", 1, BlobError.Code.notFound), ("nowhere", "data", 1, .notFound),
    ("photo", "data", 9, .notFound),
    ("photo", "name", 1, .unsupported), ("photo\"; DROP TABLE photo; --", "data", 1, .notFound),
    ("flat", "data", 1, .unsupported),
  ])
  func theErrorNamesAColumnOrRowWithoutABLOB(_ table: String, _ column: String, _ row: Int64, _ code: BlobError.Code)
    throws
  {
    try album.added(PatternSource(length: 10))
    try album.execute("CREATE TABLE flat(id INTEGER PRIMARY KEY, data BLOB) WITHOUT ROWID")
    try album.execute("INSERT INTO flat VALUES(1, zeroblob(9))")
    let source = SQLiteBlobSource(album.file, table: table, column: column, row: row)
    let error = #expect(throws: BlobError.self) { try source.info(Cancellation()) }
    #expect(error?.code == code, "\(String(describing: error))")
    #expect(error?.message.contains(album.file.description) == true)
  }

  @Test func aMissingFileIsNotMade() throws {
    let file = BytePath(album.file.bytes + Array("-none".utf8))
    let source = SQLiteBlobSource(file, table: "photo", column: "data", row: 1)
    let error = #expect(throws: BlobError.self) { try source.info(Cancellation()) }
    #expect(error?.code == .notFound)
    #expect(throws: BlobError.self) { try FileSource(file).info(Cancellation()) }
  }

  @Test func rowsAreListedInBatchesWithTheirNames() throws {
    for length in 1...5 { try album.added(PatternSource(length: Int64(length))) }
    try album.execute("UPDATE photo SET data = NULL WHERE id = 2")
    let table = SQLiteBlobTable(album.file, table: "photo", column: "data", name: "name", where: "id <> 4 OR 0")
    let first = try table.rows(after: nil, limit: 2)
    #expect(first.map(\.name) == ["photo 1.jpg", "photo 3.jpg"])
    #expect(try table.rows(after: first[1].number, limit: 2).map(\.number) == [5])
    let unnamed = SQLiteBlobTable(album.file, table: "photo", column: "data")
    #expect(try unnamed.rows(after: 4, limit: 9).map(\.name) == ["5"])
  }

  @Test func aURLNamesARowAndLeadsBackToIt() throws {
    let pattern = PatternSource(length: 1000, seed: 2)
    try album.added(PatternSource(length: 5)).added(pattern)
    let table = SQLiteBlobTable(album.file, table: "photo", column: "data", version: "version")
    let source = try SourceResolver.files.withDatabases.source(for: table.url(row: 2))
    #expect(try read(source.open(at: 0, Cancellation()), 1000) == pattern.bytes(count: 1000))
    let odd = try SQLiteBlobTable.parse("sqlite:/a%20b?table=x%26y&column=%22c&where=a%3D1 AND b='%25'&name=n")
    #expect(odd.table.file == "/a b" && odd.table.table == "x&y" && odd.table.column == "\"c")
    #expect(odd.table.condition == "a=1 AND b='%'" && odd.table.name == "n" && odd.selection == .every)
  }

  /// Names are bytes, of a text as of a BLOB.
  @Test(arguments: ["CAST(x'FF41' AS TEXT)", "x'FF41'"], ["UTF-8", "UTF-16"])
  func aNameThatIsNoUTF8IsKept(_ value: String, _ encoding: String) throws {
    // A text of a database in UTF-16 has no bytes that are not text.
    if encoding == "UTF-16", value.hasPrefix("CAST") { return }
    let scratch = Scratch()
    let database = try Database(BytePath(scratch.file))
    try database.execute("PRAGMA encoding='\(encoding)'")
    try database.execute("CREATE TABLE photo(id INTEGER PRIMARY KEY, name, data BLOB)")
    try database.execute("INSERT INTO photo VALUES(1, \(value), x'01'), (2, 'a.jpg', x'0102')")
    let table = SQLiteBlobTable(BytePath(scratch.file), table: "photo", column: "data", name: "name")
    let rows = try table.rows(after: nil, limit: 9)
    #expect(rows.map(\.name) == [BytePath([0xFF, 0x41]), "a.jpg"])
    for (row, length) in zip(rows, [1, 2] as [Int64]) {
      let source = try SourceResolver.files.withDatabases.source(for: table.url(row: row.number, named: row.name))
      #expect(try source.info(Cancellation()).length == length)
    }
    let other = table.url(row: 1, named: BytePath([0xFE, 0x41]))
    let gone = #expect(throws: BlobError.self) {
      try SourceResolver.files.withDatabases.source(for: other).info(Cancellation())
    }
    #expect(gone?.code == .notFound)
  }

  /// SQLite may give the number of a deleted row to a new one, which may have the same version: that is another BLOB.
  @Test(arguments: ["a'b & 100%.jpg", "ü", "7", "a'\u{301}b", "it'\u{200D}s", nil], [nil, "version"])
  func aRowThatHasAnotherNameIsNotTheOne(_ name: String?, _ version: String?) throws {
    try album.added(PatternSource(length: 500_000))
    // A combining character after an apostrophe forms one `Character` with it.
    let value = name.map { "CAST(x'\(hexDigits(Array($0.utf8)))' AS TEXT)" } ?? "NULL"
    try album.execute("UPDATE photo SET name = \(value)")
    let table = SQLiteBlobTable(album.file, table: "photo", column: "data", name: "name", version: version)
    let row = try #require(try table.row(1))
    #expect(row.name == BytePath(name ?? "1"))
    let url = table.url(row: 1, named: row.name)
    let source = try SourceResolver.files.withDatabases.source(for: url)
    let reader = try source.open(at: 0, Cancellation())
    _ = try read(reader, 500_000)
    try album.execute("DELETE FROM photo")
    try album.added(PatternSource(length: 500_000, seed: 2))
    try album.execute("UPDATE photo SET name = 'b.jpg', version = 1")
    let gone = #expect(throws: BlobError.self) { try source.info(Cancellation()) }
    #expect(gone?.code == .notFound && gone?.message.contains("\(row.name)") == true, "\(gone as Any)")
    #expect((#expect(throws: BlobError.self) { try reader.finish() })?.code == .changed)
    #expect(
      try SourceResolver.files.withDatabases.source(for: table.url(row: 1)).info(Cancellation()).length == 500_000)
  }

  @Test func aURLNamesChunksAndLeadsBackToThem() throws {
    let pattern = PatternSource(length: 300_000, seed: 2)
    let chunks = try album.chunked(pattern, of: 70_000).chunks(versioned: true)
    let table = SQLiteBlobTable(
      album.file, table: "chunk", column: "data", version: "version", where: "photo = 7 AND 'a&b' <> '%'")
    let url = table.url(chunksOrderedBy: "number")
    #expect(try SQLiteBlobTable.parse(url).selection == .chunks(orderedBy: "number"))
    let source = try SourceResolver.files.withDatabases.source(for: url)
    #expect(try source.info(Cancellation()) == chunks.info(Cancellation()))
    #expect(try read(source.open(at: 0, Cancellation()), 300_000) == pattern.bytes(count: 300_000))
  }

  @Test(arguments: [
    "sqlite:", "sqlite:/a", "sqlite:/a?table=t", "sqlite:?table=t&column=c", "sqlite:/a?table=t&column=c&x=1",
    "sqlite:/a?table=t&column=c&row=x", "sqlite:/a?table=t&column=c&row=1&chunks=n",
    "sqlite:/a?table=%zz&column=c", "sqlite:/a?table=%+1&column=c",
    "sqlite:/a?table&column=c", "sqlite:/a?table=t&column=c&row=1&row=1", "sqlite:/a?table=t&column=c&where=a&where=b",
    "sqlite:/a?table=%FF&column=c",
  ])
  func aURLThatSaysTooLittleIsRefused(_ url: String) {
    let error = #expect(throws: BlobError.self) { try SQLiteBlobTable.parse(url) }
    #expect(error?.code == .unsupported)
  }

  private func read(_ reader: any BlobReader, _ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
        let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count - bytes.count))
        let got = try reader.read(into: wanted)
        try #require(got > 0)
        bytes += wanted.prefix(got)
      }
    }
    return bytes
  }
}

/// A database with pictures, in a folder of its own.
private final class Album: Sendable {
  private let scratch = Scratch()
  var file: BytePath { BytePath(scratch.file) }

  init() {
    try! execute("CREATE TABLE photo(id INTEGER PRIMARY KEY, name TEXT, version INTEGER, data BLOB)")
    try! execute("CREATE TABLE chunk(photo INTEGER, number INTEGER, version TEXT, data BLOB)")
  }

  /// Each statement uses a connection of its own, which for SQLite is like another process.
  func execute(_ sql: String) throws { try Database(file).execute(sql) }

  @discardableResult func added(_ pattern: PatternSource) throws -> Album {
    let insert = try Database(file).statement("INSERT INTO photo(version, data) VALUES(1, ?1)")
    try insert.bind(1, pattern.bytes(count: Int(pattern.length)))
    try insert.run()
    try execute("UPDATE photo SET name = 'photo ' || id || '.jpg'")
    return self
  }

  func chunked(_ pattern: PatternSource, of size: Int64) throws -> Album {
    let database = try Database(file)
    try database.execute("BEGIN")
    let insert = try database.statement("INSERT INTO chunk VALUES(7, ?1, 'one', ?2)")
    // The chunks are not in the order of their rows.
    for start in stride(from: Int64(0), to: max(1, pattern.length), by: Int64.Stride(size)).reversed() {
      try insert.bind(1, start)
      try insert.bind(2, pattern.bytes(at: start, count: Int(min(size, pattern.length - start))))
      try insert.run()
    }
    try database.execute("COMMIT")
    return self
  }

  func source(versioned: Bool, row: Int64 = 1) -> any BlobSource {
    Kept(self, SQLiteBlobSource(file, table: "photo", column: "data", row: row, version: versioned ? "version" : nil))
  }

  func chunks(versioned: Bool) -> any BlobSource {
    Kept(
      self,
      SQLiteBlobSource(
        file, table: "chunk", column: "data", chunksWhere: "photo = 7", orderedBy: "number",
        version: versioned ? "version" : nil))
  }

  /// A source that keeps its folder alive.
  private struct Kept: BlobSource {
    let album: Album
    let source: SQLiteBlobSource
    init(_ album: Album, _ source: SQLiteBlobSource) { (self.album, self.source) = (album, source) }
    var access: BlobAccess { source.access }
    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
    func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      try source.open(at: offset, cancel)
    }
  }
}
