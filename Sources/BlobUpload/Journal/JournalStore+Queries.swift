import BlobSQLite
import Blobs

extension JournalStore {
  /// Removes the queries of destinations' URLs, which may be signatures; journals before version 7 have them. Must be
  /// called inside a transaction.
  func removeQueries() throws(SQLiteError) {
    // SQLite overwrites deleted content with zeros, as far as this connection is concerned.
    try database.execute("PRAGMA secure_delete=ON")
    for (id, text) in try destinationTexts() {
      guard let old: JournalDestination = value(text), old.endpoint.contains("?") else { continue }
      var new = old
      new.endpoint = String(old.endpoint.prefix { $0 != "?" })
      new.hidesQuery = true
      let json = json(new)
      if let other = try destinationID(ofText: json) {
        try move(from: id, to: other)
      } else {
        let update = try database.statement("UPDATE destination SET json = ?2 WHERE id = ?1")
        try update.bind(1, id)
        try update.bind(2, json)
        try update.run()
      }
    }
  }

  /// Must be called inside a transaction. An earlier version did not distinguish users. Its uploads to this destination
  /// are attributed to the first user with the same options; otherwise all of them would be sent again. `text`: the
  /// JSON of the destination.
  func adopt(_ destination: JournalDestination, _ text: String) throws(SQLiteError) -> Int64? {
    guard let account = destination.account else { return nil }
    var old = destination
    old.account = nil
    guard let id = try destinationID(ofText: json(old)) else { return nil }
    let update = try database.statement("UPDATE destination SET json = ?2 WHERE id = ?1")
    try update.bind(1, id)
    try update.bind(2, text)
    try update.run()
    destinations[id] = destination
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
  func takeOverForms(of destination: JournalDestination, _ id: Int64) throws(SQLiteError) {
    guard destination.protocolName == FormPost().name, let recipient = destination.recipient else { return }
    var old = destination
    (old.account, old.recipient) = (nil, nil)
    var older = old
    older.queryDigest = nil
    for text in [json(old), json(older)] {
      guard let before = try destinationID(ofText: text) else { continue }
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

  func allDestinations() throws(SQLiteError) -> [JournalDestination] {
    try destinationTexts().compactMap { value($0.1) }
  }

  /// The ids of all destinations at this place; they differ in other properties.
  func destinationIDs(at place: String) throws(SQLiteError) -> [Int64] {
    try destinationTexts().compactMap { id, text in
      let destination: JournalDestination? = value(text)
      return destination?.place == place ? id : nil
    }
  }

  func destinationTexts() throws(SQLiteError) -> [(Int64, String)] {
    let select = try database.statement("SELECT id, json FROM destination")
    defer { select.reset() }
    var texts: [(Int64, String)] = []
    while try select.step() { texts.append((select.int(0), select.text(1) ?? "")) }
    return texts
  }

  private func destinationID(ofText text: String) throws(SQLiteError) -> Int64? {
    let select = try database.statement("SELECT id FROM destination WHERE json = ?1")
    try select.bind(1, text)
    return try select.first { $0.int(0) }
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
    try run("DELETE FROM finished WHERE destination = ?1", with: old)
    try run("DELETE FROM destination WHERE id = ?1", with: old)
  }

  func uploads(to destination: Int64, where isMeant: (JournalUpload) -> Bool) throws(SQLiteError) -> [JournalUpload] {
    let select = try database.statement("SELECT target, source, path FROM upload WHERE destination = ?1")
    defer { select.reset() }
    try select.bind(1, destination)
    var found: [JournalUpload] = []
    while try select.step() {
      let upload = JournalUpload(
        target: JournalIntent.parts(ofKey: select.text(0) ?? "").target, source: BytePath(select.blob(1) ?? []),
        path: BytePath(select.blob(2) ?? []))
      if isMeant(upload) { found.append(upload) }
    }
    return found
  }
}

extension Journal {
  /// The uploads to a destination, in any state, for which `isMeant` returns true. Reads every entry of the destination.
  package func uploads(
    to destination: Int64, where isMeant: @Sendable (JournalUpload) -> Bool
  ) throws(JournalError) -> [JournalUpload] {
    try read { store throws(SQLiteError) in try store.uploads(to: destination, where: isMeant) }
  }
}

/// An upload in the journal, without its session.
package struct JournalUpload: Sendable {
  /// The URL of the file at the server.
  package var target: String
  package var source: BytePath
  /// The path below the destination.
  package var path: BytePath
}
