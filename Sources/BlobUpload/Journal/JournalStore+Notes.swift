import BlobSQLite

extension JournalStore {
  /// Must be called inside a transaction. Notes for entries that this store has not claimed, or no longer has, are
  /// ignored.
  func apply(_ notes: [JournalNote]) throws(SQLiteError) {
    // Without a claim, no note applies.
    guard let me = ownerID, !notes.isEmpty else { return }
    let now = currentSeconds()
    // Notes of this kind, the end of an upload that was sent in one request, are by far the most frequent.
    var ended: [Int64] = []
    for note in notes {
      if case .done(let location, _, keepsChecksums: false, replaces: true) = note.event,
        let known = fresh[note.id], location == known.target
      {
        ended.append(note.id)
      } else {
        try end(ended, me, now)
        ended = []
        try apply(note, me, now)
      }
    }
    try end(ended, me, now)
  }

  /// Marks entries as done that this store has created and whose location is their target. Consecutive ids are updated
  /// by one statement.
  private func end(_ ids: [Int64], _ me: Int64, _ now: Int64) throws(SQLiteError) {
    var rest = ids.sorted()[...]
    while let first = rest.first {
      let count = rest.enumerated().first { $1 != first + Int64($0) }?.0 ?? rest.count
      let run = rest.prefix(count)
      rest.removeFirst(count)
      if count > 1, try end(from: first, count, me, now) {
        for id in run { if let known = fresh.removeValue(forKey: id) { self.count(known.destination, known.bytes) } }
        if try mayReplace(run) { try forgetReplaced(by: first, through: first + Int64(count) - 1) }
        for id in run { try giveUpOtherNumbers(of: id) }
      } else {
        // Some row has another state: each entry is updated on its own.
        for id in run {
          try apply(
            JournalNote(
              id: id,
              event: .done(location: fresh[id]?.target, length: nil, keepsChecksums: false, replaces: true)),
            me, now)
        }
      }
    }
  }

  /// false, with nothing changed, if any of the rows has another state.
  private func end(from first: Int64, _ count: Int, _ me: Int64, _ now: Int64) throws(SQLiteError) -> Bool {
    try database.statement("SAVEPOINT ending").run()
    let done = try database.statement(
      """
      UPDATE upload SET state = 2, owner = NULL, updated = ?2, acknowledged = length, error = NULL, location = ''
      WHERE id BETWEEN ?1 AND ?3 AND owner = ?4 AND length IS NOT NULL AND session IS NULL
      """)
    try done.bind(3, first + Int64(count) - 1)
    try done.bind(4, me)
    try run(done, first, now)
    let isAll = database.changes == count
    if !isAll { try database.statement("ROLLBACK TO ending").run() }
    try database.statement("RELEASE ending").run()
    return isAll
  }

  private func apply(_ note: JournalNote, _ me: Int64, _ now: Int64) throws(SQLiteError) {
    if let known = fresh.removeValue(forKey: note.id),
      case .done(let location, _, keepsChecksums: false, let replaces) = note.event,
      try end(note.id, known.bytes, location, me, now)
    {
      count(known.destination, known.bytes)
      if replaces { try forgetReplaced(by: note.id, through: note.id) }
      try giveUpOtherNumbers(of: note.id)
      return
    }
    guard var row = try glance(note.id),
      row.owner == me || row.isFree && note.needsNoClaim(isDone: row.isDone || row.isSuperseded)
    else { return }
    switch note.event {
    case .done(let location, let length, let keepsChecksums, let replaces):
      if !row.hasLength, let length { row.bytes = length }
      if keepsChecksums { try keepSent(note.id, me, hasSucceeded: true) }
      // '' means "the same as the target" and saves space.
      let done = try database.statement(
        """
        UPDATE upload SET state = 2, owner = NULL, updated = ?2, acknowledged = ?3, error = NULL, session = NULL,
        location = CASE WHEN ?4 = target THEN '' ELSE ?4 END, length = ifnull(length, ?5) WHERE id = ?1
        """)
      try done.bind(3, row.bytes)
      try done.bind(4, location)
      try done.bind(5, length)
      try run(done, note.id, now)
      count(row.destination, row.bytes)
      if !keepsChecksums, row.hasSession { try removeTraces(note.id) }
      if replaces { try forgetReplaced(by: note.id, through: note.id) }
      try giveUpOtherNumbers(of: note.id)
    case .opened(let session):
      let open = try database.statement("UPDATE upload SET state = 1, session = ?3, updated = ?2 WHERE id = ?1")
      try open.bind(3, json(session))
      try run(open, note.id, now)
    case .acknowledged(let offset):
      let acknowledge = try database.statement("UPDATE upload SET acknowledged = ?3, updated = ?2 WHERE id = ?1")
      try acknowledge.bind(3, offset)
      try run(acknowledge, note.id, now)
    case .receipt(let receipt): try keep(receipt, note.id)
    case .failed(let message): try end(note.id, as: .failed, message, me, now)
    case .refused(let message): try end(note.id, as: .refused, message, me, now)
    case .restarted, .abandoned:
      if case .abandoned = note.event, row.hasSession { try setAside(note.id, as: try nextID(), nil, now) }
      if row.isDone { uncount(row.destination, row.bytes) }
      try removeTraces(note.id)
      let restart = try database.statement(
        """
        UPDATE upload SET sent_length = CASE WHEN state = 2 THEN length ELSE sent_length END,
        state = 0, session = NULL, location = NULL, acknowledged = 0, owner = ?3, updated = ?2 WHERE id = ?1
        """)
      try restart.bind(3, me)
      try run(restart, note.id, now)
    case .recognized(let validator):
      let recognize = try database.statement(
        "UPDATE upload SET version = ?3, instance = ?4, updated = ?2 WHERE id = ?1")
      try recognize.bind(3, validator.version)
      try recognize.bind(4, validator.instance)
      try run(recognize, note.id, now)
    case .kept: try reinstate(note.id, row, me, now)
    case .doubted: try doubt(note.id, row, me, now)
    case .released:
      try keepSent(note.id, me)
      try run(try database.statement("UPDATE upload SET owner = NULL, updated = ?2 WHERE id = ?1"), note.id, now)
    }
  }

  /// The fast path for the most frequent end: an entry that this store has created and that was sent in one request.
  /// false: the row has another state.
  private func end(
    _ id: Int64, _ bytes: Int64, _ location: String?, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> Bool {
    // '' means "the same as the target" and saves space.
    let done = try database.statement(
      """
      UPDATE upload SET state = 2, owner = NULL, updated = ?2, acknowledged = ?3, error = NULL,
      location = CASE WHEN ?4 = target THEN '' ELSE ?4 END
      WHERE id = ?1 AND owner = ?5 AND length = ?3 AND session IS NULL
      """)
    try done.bind(3, bytes)
    try done.bind(4, location)
    try done.bind(5, me)
    try run(done, id, now)
    return database.changes == 1
  }

  private func end(
    _ id: Int64, as state: JournalEntry.State, _ message: String, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) {
    try keepSent(id, me)
    let fail = try database.statement(
      "UPDATE upload SET state = ?4, owner = NULL, error = ?3, updated = ?2 WHERE id = ?1")
    try fail.bind(3, message)
    try fail.bind(4, Int64(state.rawValue))
    try run(fail, id, now)
  }

  private func run(_ statement: Statement, _ id: Int64, _ now: Int64) throws(SQLiteError) {
    try statement.bind(1, id)
    try statement.bind(2, now)
    try statement.run()
  }

  private func keep(_ receipt: PartReceipt, _ id: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      "INSERT OR REPLACE INTO receipt(upload, number, start, held, state) VALUES(?1, ?2, ?3, ?4, ?5)")
    try insert.bind(1, id)
    try insert.bind(2, Int64(receipt.number))
    try insert.bind(3, receipt.start)
    try insert.bind(4, receipt.held)
    try insert.bind(5, receipt.state.isEmpty ? nil : json(receipt.state))
    try insert.run()
  }
}

/// The properties of a row that updates depend on.
struct UploadRowFacts {
  var destination: Int64
  var isDone: Bool
  var owner: Int64?
  var hasSession: Bool
  var hasLength: Bool
  /// The server has given this upload its own URL, other than the target and the target with a version.
  var hasOwnURL: Bool
  /// The upload was done until another source was sent to the same place.
  var isSuperseded: Bool
  /// The total length; if it is unknown, the acknowledged bytes.
  var bytes: Int64

  var isFree: Bool { owner == nil }
}

extension JournalStore {
  func glance(_ id: Int64) throws(SQLiteError) -> UploadRowFacts? {
    let select = try database.statement(
      """
      SELECT destination, state, owner, ifnull(length, acknowledged), session IS NOT NULL, length IS NOT NULL,
      ifnull(location <> '' AND instr(location, '#') = 0
      AND location <> substr(target, 1, instr(target || '#', '#') - 1), 0), state = 4 AND location IS NOT NULL
      FROM upload WHERE id = ?1
      """)
    try select.bind(1, id)
    return try select.first { row in
      UploadRowFacts(
        destination: row.int(0), isDone: row.int(1) == 2, owner: row.intOrNil(2), hasSession: row.int(4) != 0,
        hasLength: row.int(5) != 0, hasOwnURL: row.int(6) != 0, isSuperseded: row.int(7) != 0, bytes: row.int(3))
    }
  }

  /// Removes receipts and records of sent bytes.
  func removeTraces(_ id: Int64) throws(SQLiteError) {
    try run("DELETE FROM receipt WHERE upload = ?1", with: id)
    try run("DELETE FROM sent WHERE upload = ?1", with: id)
    log.drop(id)
  }

  /// Counts one more upload as done. Must be called inside a transaction, which writes the totals at its end.
  func count(_ destination: Int64, _ bytes: Int64) {
    finished[destination, default: (0, 0)].count += 1
    finished[destination, default: (0, 0)].bytes &+= bytes
  }

  /// An upload that was done no longer is.
  func uncount(_ destination: Int64, _ bytes: Int64) {
    finished[destination, default: (0, 0)].count -= 1
    finished[destination, default: (0, 0)].bytes &-= bytes
  }
}
