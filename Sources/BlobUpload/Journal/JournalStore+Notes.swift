import BlobSQLite

extension JournalStore {
  /// Inside a transaction. A note for an entry this store has not claimed, or no longer has, changes nothing.
  func apply(_ notes: [JournalNote]) throws(SQLiteError) {
    // Without a claim there is nothing to note.
    guard let me = ownerID, !notes.isEmpty else { return }
    let now = currentSeconds()
    for note in notes { try apply(note, me, now) }
  }

  private func apply(_ note: JournalNote, _ me: Int64, _ now: Int64) throws(SQLiteError) {
    switch note.event {
    case .done(let location):
      // The commonest by far. '' says "the same as the target" in no space.
      let done = try database.statement(
        """
        UPDATE upload SET state = 2, owner = NULL, updated = ?3, acknowledged = ifnull(length, acknowledged),
        location = CASE WHEN ?4 = target THEN '' ELSE ?4 END, error = NULL, session = NULL WHERE id = ?1 AND owner = ?2
        """)
      try done.bind(4, location)
      try run(done, note.id, me, now)
    case .opened(let session):
      let open = try database.statement(
        "UPDATE upload SET state = 1, session = ?4, updated = ?3 WHERE id = ?1 AND owner = ?2")
      try open.bind(4, json(session))
      try run(open, note.id, me, now)
    case .acknowledged(let offset):
      let acknowledge = try database.statement(
        "UPDATE upload SET acknowledged = ?4, updated = ?3 WHERE id = ?1 AND owner = ?2")
      try acknowledge.bind(4, offset)
      try run(acknowledge, note.id, me, now)
    case .receipt(let receipt): try apply(receipt, note.id, me)
    case .failed(let message):
      let fail = try database.statement(
        "UPDATE upload SET state = 3, owner = NULL, error = ?4, updated = ?3 WHERE id = ?1 AND owner = ?2")
      try fail.bind(4, message)
      try run(fail, note.id, me, now)
    case .restarted:
      let restart = try database.statement(
        """
        UPDATE upload SET state = 0, session = NULL, location = NULL, acknowledged = 0, owner = ?2, updated = ?3
        WHERE id = ?1 AND (owner = ?2 OR owner IS NULL)
        """)
      try run(restart, note.id, me, now)
    case .released:
      let release = try database.statement("UPDATE upload SET owner = NULL, updated = ?3 WHERE id = ?1 AND owner = ?2")
      try run(release, note.id, me, now)
    }
  }

  private func run(_ statement: Statement, _ id: Int64, _ me: Int64, _ now: Int64) throws(SQLiteError) {
    try statement.bind(1, id)
    try statement.bind(2, me)
    try statement.bind(3, now)
    try statement.run()
  }

  private func apply(_ receipt: PartReceipt, _ id: Int64, _ me: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      """
      INSERT OR REPLACE INTO receipt(upload, number, start, held, state)
      SELECT id, ?3, ?4, ?5, ?6 FROM upload WHERE id = ?1 AND owner = ?2
      """)
    try insert.bind(1, id)
    try insert.bind(2, me)
    try insert.bind(3, Int64(receipt.number))
    try insert.bind(4, receipt.start)
    try insert.bind(5, receipt.held)
    try insert.bind(6, receipt.state.isEmpty ? nil : json(receipt.state))
    try insert.run()
  }
}
