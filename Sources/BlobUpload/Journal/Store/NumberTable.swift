import BlobSQLite

/// The table `numbered`: how names count on where they are taken, for a later process that gives them further numbers. Most
/// uploads have no row.
struct NumberTable {
  let database: Database

  // Since version 12.
  static let schema = """
    CREATE TABLE IF NOT EXISTS numbered(upload INTEGER PRIMARY KEY, counter INTEGER, number INTEGER NOT NULL);
    """

  /// Must be called inside a transaction.
  func keep(_ name: UploadQueue.NumberedName, of id: Int64) throws(SQLiteError) {
    if name.counter == nil && name.number == 1 { return }
    let insert = try database.statement(
      "INSERT OR REPLACE INTO numbered(upload, counter, number) VALUES(?1, ?2, ?3)")
    try insert.bind(1, id)
    try insert.bind(2, name.counter.map { Int64($0) })
    try insert.bind(3, Int64(name.number))
    try insert.run()
  }

  /// The names of those entries that have a row, by their ids.
  func names(of entries: [JournalEntry]) throws(SQLiteError) -> [Int64: UploadQueue.NumberedName] {
    let select = try database.statement(
      "SELECT upload, counter, number FROM numbered WHERE upload IN (SELECT value FROM json_each(?1))")
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(entries.map(\.id)))
    var numbers: [Int64: (counter: Int64?, number: Int64)] = [:]
    while try select.step() { numbers[select.int(0)] = (select.intOrNil(1), select.int(2)) }
    var names: [Int64: UploadQueue.NumberedName] = [:]
    for entry in entries {
      guard let (counter, number) = numbers[entry.id] else { continue }
      names[entry.id] = UploadQueue.NumberedName(
        entry.intent.path, counter: counter.map { Int(clamping: $0) }, number: Int(clamping: number))
    }
    return names
  }
}
