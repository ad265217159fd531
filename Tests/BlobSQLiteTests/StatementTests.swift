import BlobSQLite
import Testing

@Suite struct StatementTests {
  let database: Database

  init() throws {
    database = try Database(":memory:")
    try database.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, value)")
  }

  @Test(arguments: [0, 1, -1, .min, .max]) func integersComeBackAsBound(value: Int64) throws {
    let statement = try database.statement("SELECT ?1")
    try statement.bind(1, value)
    #expect(try statement.first { $0.int(0) } == value)
  }

  @Test(arguments: ["", "a", "naïve 🚢", "line\nbreak", String(repeating: "long ", count: 5000)])
  func textComesBackAsBound(value: String) throws {
    let statement = try database.statement("SELECT ?1, typeof(?1)")
    try statement.bind(1, value)
    let row = try statement.first { ($0.text(0), $0.text(1)) }
    #expect(row?.0 == value)
    #expect(row?.1 == "text")
  }

  @Test(arguments: [[], [0], [0xFF, 0, 0x0A], [UInt8](repeating: 7, count: 100_000)])
  func bytesComeBackAsBound(value: [UInt8]) throws {
    let statement = try database.statement("SELECT ?1, typeof(?1)")
    try statement.bind(1, value)
    let row = try statement.first { ($0.blob(0), $0.text(1)) }
    #expect(row?.0 == value)
    #expect(row?.1 == "blob")
  }

  @Test func nilIsNull() throws {
    let statement = try database.statement("SELECT ?1, ?2, ?3, ?4")
    try statement.bind(1, nil as Int64?)
    try statement.bind(2, nil as String?)
    try statement.bind(3, nil as [UInt8]?)
    try statement.bindNull(4)
    #expect(try statement.step())
    for column in 0..<4 { #expect(statement.isNull(Int32(column))) }
    #expect(statement.text(0) == nil)
    #expect(statement.blob(1) == nil)
    #expect(statement.intOrNil(2) == nil)
    #expect(statement.int(3) == 0)
    statement.reset()
  }

  @Test func stepsOverRowsAndEndsReset() throws {
    let insert = try database.statement("INSERT INTO item(value) VALUES(?1)")
    for value in 1...3 as ClosedRange<Int64> {
      try insert.bind(1, value * 10)
      try insert.run()
      #expect(database.lastInsertedID == value)
      #expect(database.changes == 1)
    }
    let select = try database.statement("SELECT value FROM item ORDER BY id")
    for _ in 0..<2 {
      var values: [Int64] = []
      while try select.step() { values.append(select.int(0)) }
      #expect(values == [10, 20, 30])
    }
  }

  @Test func aLiteralIsPreparedOnce() throws {
    func statement() throws -> Statement { try database.statement("SELECT value FROM item") }
    #expect(try statement() === statement())
  }

  @Test func anErrorNamesTheOperationTheFileAndTheReason() throws {
    try database.execute("INSERT INTO item VALUES(1, 'secret')")
    let error = #expect(throws: SQLiteError.self) { try insertTwice(into: database) }
    #expect(error?.operation == "INSERT INTO item")
    #expect(error?.description.contains("UNIQUE constraint failed: item.id") == true)
    #expect(error?.description.contains("secret") == false)
    #expect(error?.code == 1555)
  }

  @Test func aStatementIsUsableAfterItsError() throws {
    try database.execute("INSERT INTO item VALUES(1, 1)")
    _ = #expect(throws: SQLiteError.self) { try insertTwice(into: database) }
    try database.execute("DELETE FROM item")
    try insertTwice(into: database)
    #expect(try database.statement("SELECT count(*) FROM item").first { $0.int(0) } == 1)
  }

  @Test func badSQLIsAnError() {
    let error = #expect(throws: SQLiteError.self) { try prepareNonsense(in: database) }
    #expect(error?.message.contains("syntax error") == true)
  }
}

private func insertTwice(into database: Database) throws(SQLiteError) {
  let insert = try database.statement("INSERT INTO item VALUES(1, 'secret')")
  try insert.run()
}

private func prepareNonsense(in database: Database) throws(SQLiteError) { _ = try database.prepare("SELEKT 1") }
