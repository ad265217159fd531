import BlobSQLite

/// The table `destination`: where uploads go. The rows of other tables have its numbers.
final class DestinationTable {
  private let database: Database
  /// Destinations that were read or added here.
  private var known: [Int64: JournalDestination] = [:]

  init(_ database: Database) { self.database = database }

  /// The id of the destination, which is added if it is new.
  func id(of destination: JournalDestination) throws(SQLiteError) -> Int64 {
    let text = JSONColumn.encode(destination)
    return try database.transaction { () throws(SQLiteError) in
      if let id = try id(ofText: text) { return id }
      if let id = try adopt(destination) { return id }
      let insert = try database.statement("INSERT INTO destination(json) VALUES(?1)")
      try insert.bind(1, text)
      try insert.run()
      let id = database.lastInsertedID
      try takeOverForms(of: destination, id)
      return id
    }
  }

  func destination(_ id: Int64) throws(SQLiteError) -> JournalDestination {
    if let known = known[id] { return known }
    let select = try database.statement("SELECT json FROM destination WHERE id = ?1")
    try select.bind(1, id)
    guard let text = try select.first({ $0.text(0) }), let text, let found: JournalDestination = JSONColumn.decode(text)
    else {
      throw SQLiteError("read destination \(id)", database.path, code: 11, "it is missing or cannot be understood")
    }
    known[id] = found
    return found
  }

  func all() throws(SQLiteError) -> [JournalDestination] { try texts().compactMap { JSONColumn.decode($0.text) } }

  /// The ids of all destinations at this place; they differ in other properties.
  func ids(at place: String) throws(SQLiteError) -> [Int64] {
    try texts().compactMap { id, text in
      let destination: JournalDestination? = JSONColumn.decode(text)
      return destination?.place == place ? id : nil
    }
  }

  /// Every destination as it is stored.
  func texts() throws(SQLiteError) -> [(id: Int64, text: String)] {
    let select = try database.statement("SELECT id, json FROM destination")
    defer { select.reset() }
    var texts: [(Int64, String)] = []
    while try select.step() { texts.append((select.int(0), select.text(1) ?? "")) }
    return texts
  }

  /// Must be called inside a transaction.
  func replace(_ id: Int64, with destination: JournalDestination) throws(SQLiteError) {
    let update = try database.statement("UPDATE destination SET json = ?2 WHERE id = ?1")
    try update.bind(1, id)
    try update.bind(2, JSONColumn.encode(destination))
    try update.run()
    known[id] = destination
  }

  private func id(ofText text: String) throws(SQLiteError) -> Int64? {
    let select = try database.statement("SELECT id FROM destination WHERE json = ?1")
    try select.bind(1, text)
    return try select.first { $0.int(0) }
  }
}

// Destinations that earlier versions of this program have written.
extension DestinationTable {
  /// Removes the queries of destinations' URLs, which may be signatures; journals before version 7 have them. Must be
  /// called inside a transaction.
  func removeQueries() throws(SQLiteError) {
    // SQLite overwrites deleted content with zeros, as far as this connection is concerned.
    try database.execute("PRAGMA secure_delete=ON")
    for (id, text) in try texts() {
      guard let old: JournalDestination = JSONColumn.decode(text), old.endpoint.contains("?") else { continue }
      var new = old
      new.endpoint = String(old.endpoint.prefix { $0 != "?" })
      new.hidesQuery = true
      if let other = try self.id(ofText: JSONColumn.encode(new)) {
        try move(from: id, to: other)
      } else {
        try replace(id, with: new)
      }
    }
  }

  /// Must be called inside a transaction. An earlier version did not distinguish users. Its uploads to this destination
  /// are attributed to the first user with the same options; otherwise all of them would be sent again.
  private func adopt(_ destination: JournalDestination) throws(SQLiteError) -> Int64? {
    guard let account = destination.account else { return nil }
    var old = destination
    old.account = nil
    guard let id = try id(ofText: JSONColumn.encode(old)) else { return nil }
    try replace(id, with: destination)
    if account.isEmpty { return id }
    // The key of a leftover must stay unique.
    let rename = try database.statement(
      """
      UPDATE OR IGNORE upload SET target = target || CASE instr(target, '#') WHEN 0 THEN '#@' ELSE '@' END || ?2
      WHERE destination = ?1 AND target NOT LIKE '%#left-' || id
      """)
    try rename.bind(1, id)
    try rename.bind(2, account)
    try rename.run()
    return id
  }

  /// Must be called inside a transaction. An earlier version did not distinguish recipients. Its pending forms are
  /// moved to this destination, which that version regarded as the same; otherwise a push would post them, and a resume
  /// would post them again.
  private func takeOverForms(of destination: JournalDestination, _ id: Int64) throws(SQLiteError) {
    guard destination.protocolName == FormPost().name, let recipient = destination.recipient else { return }
    var old = destination
    (old.account, old.recipient) = (nil, nil)
    var older = old
    older.queryDigest = nil
    for text in [JSONColumn.encode(old), JSONColumn.encode(older)] {
      guard let before = try self.id(ofText: text) else { continue }
      let move = try database.statement(
        """
        UPDATE OR IGNORE upload SET destination = ?1, target = target || '#' || ?3
        WHERE destination = ?2 AND state <> 2 AND owner IS NULL AND instr(target, '#') = 0
        """)
      try move.bind(1, id)
      try move.bind(2, before)
      try move.bind(3, Recipient.key(recipient, account: destination.account ?? ""))
      try move.run()
    }
  }

  /// Merges two destinations that differed only in their queries.
  private func move(from old: Int64, to new: Int64) throws(SQLiteError) {
    let statements: [StaticString] = [
      "UPDATE upload SET destination = ?2 WHERE destination = ?1",
      """
      INSERT INTO finished SELECT ?2, count, bytes FROM finished WHERE destination = ?1
      ON CONFLICT DO UPDATE SET count = count + excluded.count, bytes = bytes + excluded.bytes
      """,
    ]
    for text in statements {
      let statement = try database.statement(text)
      try statement.bind(1, old)
      try statement.bind(2, new)
      try statement.run()
    }
    try database.run("DELETE FROM finished WHERE destination = ?1", with: old)
    try database.run("DELETE FROM destination WHERE id = ?1", with: old)
  }
}
