import BlobSQLite
import BlobTesting
import TestSupport
import Blobs
import Testing

/// Malicious databases from untrusted sources.
struct StrangeDatabaseTests {
  private let scratch = Scratch()
  private var file: BytePath { BytePath(scratch.file) }
  private static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

  private func make(_ statements: String...) throws {
    let database = try Database(file)
    for statement in statements { try database.execute(statement) }
  }

  @Test func aViewWithoutEndIsLeftWhenItIsCancelled() throws {
    try make("CREATE TABLE t(id INTEGER PRIMARY KEY, data BLOB)", "INSERT INTO t(data) VALUES(zeroblob(9))")
    try make("CREATE VIEW v AS \(Self.endless) SELECT i FROM n")
    let source = SQLiteBlobSource(
      file, table: "t", column: "data", chunksWhere: "EXISTS (SELECT 1 FROM v WHERE i < 0)", orderedBy: "id")
    let cancel = Cancellation()
    let asked = Background { failure { () throws(BlobError) in try source.info(cancel) } }
    #expect(asked.value(within: .milliseconds(100)) == nil, "it was meant to go on without end")
    cancel.cancel()
    let error = try #require(asked.value(within: .seconds(10)))
    #expect(error?.code == .cancelled)
  }

  @Test func aViewThatPretendsToBeATableIsRefused() throws {
    try make("CREATE VIEW v AS \(Self.endless) SELECT i AS rowid, x'00' AS data FROM n")
    let source = SQLiteBlobSource(file, table: "v", column: "data", chunksWhere: "1", orderedBy: "rowid")
    let cancel = Cancellation()
    let asked = Background { failure { () throws(BlobError) in try source.info(cancel) } }
    let error = asked.value(within: .seconds(3))
    cancel.cancel()
    #expect(try #require(error)?.code == .unsupported)
    #expect(
      failure { () throws(BlobError) in try SQLiteBlobTable(file, table: "v", column: "data").rows(after: nil, limit: 2)
      }?.code == .unsupported)
  }

  @Test(arguments: [
    "zeroblob(200000000)", "hex(zeroblob(100000000))", "'a text of the database' || hex(zeroblob(9999))",
  ])
  func aVersionThatIsMadeUpAtGreatLengthIsRefused(_ expression: String) throws {
    try make("CREATE TABLE t(id INTEGER PRIMARY KEY, data BLOB, v AS (\(expression)))")
    try make("INSERT INTO t(data) VALUES(zeroblob(9))")
    let source = SQLiteBlobSource(file, table: "t", column: "data", row: 1, version: "v")
    let error = failure { () throws(BlobError) in try source.info(Cancellation()) }
    #expect(error?.code == .unsupported)
  }

  @Test func aBLOBMayBeLargerThanWhatAStatementMayHold() throws {
    try make("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT, data BLOB)")
    try make("INSERT INTO t(v, data) VALUES('one', zeroblob(70000000))")
    for version in ["v", nil] {
      let source = SQLiteBlobSource(file, table: "t", column: "data", row: 1, version: version)
      #expect(try source.info(Cancellation()).length == 70_000_000)
    }
    #expect(try SQLiteBlobTable(file, table: "t", column: "data").rows(after: nil, limit: 2).count == 1)
  }

  @Test func everyRowIsListedWhateverItsNumber() throws {
    try make("CREATE TABLE t(id INTEGER PRIMARY KEY, data BLOB)")
    for row in [Int64.min, .min + 1, -1, 0, .max] {
      try make("INSERT INTO t VALUES(\(row == .min ? "-9223372036854775807 - 1" : "\(row)"), zeroblob(3))")
    }
    let table = SQLiteBlobTable(file, table: "t", column: "data")
    #expect(try table.rows(after: nil, limit: 9).map(\.number) == [.min, .min + 1, -1, 0, .max])
    #expect(try table.rows(after: .max, limit: 9).isEmpty)
    #expect(try table.source(row: .min).info(Cancellation()).length == 3)
  }

  @Test func aNameOfManyBytesIsCut() throws {
    try make("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, data BLOB)")
    try make("INSERT INTO t(name, data) VALUES(hex(zeroblob(3000000)), zeroblob(3))")
    let rows = try SQLiteBlobTable(file, table: "t", column: "data", name: "name").rows(after: nil, limit: 9)
    #expect(rows.first.map { $0.name.bytes.count < 10_000 && $0.name.bytes.count > 4096 } == true)
  }

  /// A condition is inserted between others: it must neither end early nor include what follows it.
  @Test(arguments: [
    "n = 1) OR (n = 3", "n = 1)", "n = 1 ORDER BY n", "n = 1; SELECT 1", "1) UNION SELECT 1, 2 WHERE (1", "n = 1 /*",
    "n = 1 --",
    "n = 1 LIMIT 1", "", "n = 1\0) OR (n = 3",
  ])
  func aConditionThatIsNoExpressionIsRefused(_ condition: String) throws {
    try make("CREATE TABLE t(n INTEGER PRIMARY KEY, data BLOB)")
    for _ in 0..<3 { try make("INSERT INTO t(data) VALUES(zeroblob(3))") }
    let table = SQLiteBlobTable(file, table: "t", column: "data", where: condition)
    let errors = [
      failure { () throws(BlobError) in try table.rows(after: 1, limit: 2) },
      failure { () throws(BlobError) in try table.countOfNulls() },
      failure { () throws(BlobError) in try table.source(chunksOrderedBy: "n").info(Cancellation()) },
    ]
    #expect(errors.allSatisfy { $0?.code == .unsupported }, "\(errors)")
  }

  @Test(arguments: ["n = 1 OR n = 3", "(n = 1) OR (n = 3)", "n IN (SELECT 1 UNION SELECT 3)", "n <> 2 /* ) */ -- )\n"])
  func aConditionIsOneExpression(_ condition: String) throws {
    try make("CREATE TABLE t(n INTEGER PRIMARY KEY, data BLOB)")
    for _ in 0..<3 { try make("INSERT INTO t(data) VALUES(zeroblob(3))") }
    let table = SQLiteBlobTable(file, table: "t", column: "data", where: condition)
    #expect(try table.rows(after: nil, limit: 9).map(\.number) == [1, 3])
    #expect(try table.source(chunksOrderedBy: "n").info(Cancellation()).length == 6)
  }
}
