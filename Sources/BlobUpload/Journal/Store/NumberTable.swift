import BlobSQLite
import Blobs

/// The table `numbered`: how names count on where they are taken, for a later process that gives them further numbers. Most
/// uploads have no row.
struct NumberTable {
  let database: Database

  // Since version 12.
  static let schema = """
    CREATE TABLE IF NOT EXISTS numbered(upload INTEGER PRIMARY KEY, counter INTEGER, number INTEGER NOT NULL);
    """

  /// Must be called inside a transaction.
  func keep(_ name: NumberedName, of id: Int64) throws(SQLiteError) {
    if name.counter == nil && name.number == 1 { return }
    let insert = try database.statement(
      "INSERT OR REPLACE INTO numbered(upload, counter, number) VALUES(?1, ?2, ?3)")
    try insert.bind(1, id)
    try insert.bind(2, name.counter.map { Int64($0) })
    try insert.bind(3, Int64(name.number))
    try insert.run()
  }

  /// The uploads to a destination that are done or under way under names with numbers over 1, the latest last.
  func numbered(at destination: Int64) throws(SQLiteError) -> [NumberedUpload] {
    let select = try database.statement(
      """
      SELECT source, path, state, counter, number FROM numbered CROSS JOIN upload ON id = upload
      WHERE number > 1 AND destination = ?1 AND state < 3 ORDER BY updated, id
      """)
    defer { select.reset() }
    try select.bind(1, destination)
    var uploads: [NumberedUpload] = []
    while try select.step() {
      let name = NumberedName(
        BytePath(select.blob(1) ?? []), counter: select.intOrNil(3).map { Int(clamping: $0) },
        number: Int(clamping: select.int(4)))
      guard let name else { continue }
      uploads.append(
        NumberedUpload(source: BytePath(select.blob(0) ?? []), name: name, isDone: select.int(2) == 2))
    }
    return uploads
  }

  /// The names of those entries that have a row, by their ids.
  func names(of entries: [JournalEntry]) throws(SQLiteError) -> [Int64: NumberedName] {
    let select = try database.statement(
      "SELECT upload, counter, number FROM numbered WHERE upload IN (SELECT value FROM json_each(?1))")
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(entries.map(\.id)))
    var numbers: [Int64: (counter: Int64?, number: Int64)] = [:]
    while try select.step() { numbers[select.int(0)] = (select.intOrNil(1), select.int(2)) }
    var names: [Int64: NumberedName] = [:]
    for entry in entries {
      guard let (counter, number) = numbers[entry.id] else { continue }
      names[entry.id] = NumberedName(
        entry.intent.path, counter: counter.map { Int(clamping: $0) }, number: Int(clamping: number))
    }
    return names
  }
}
