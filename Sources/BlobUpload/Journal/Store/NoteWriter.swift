import BlobSQLite

/// Writes notes about entries that this journal has claimed.
final class NoteWriter {
  private let uploads: UploadTable
  private let replaced: ReplacedUploads
  private let rows: NamedRows
  private let database: Database

  init(_ uploads: UploadTable, _ replaced: ReplacedUploads, _ rows: NamedRows) {
    (self.uploads, self.replaced, self.rows, database) = (uploads, replaced, rows, uploads.database)
  }

  /// Must be called inside a transaction. Notes for entries that this store has not claimed, or no longer has, are
  /// ignored.
  func apply(_ notes: [JournalNote]) throws(SQLiteError) {
    // Without a claim, no note applies.
    guard let me = uploads.owners.id, !notes.isEmpty else { return }
    let now = currentSeconds()
    // Notes of this kind, the end of an upload that was sent in one request, are by far the most frequent.
    var ended: [Ended] = []
    for note in withoutSuperseded(notes) {
      if case .done(let location, _, keepsChecksums: false, replaces: true, let sealed) = note.event,
        let known = uploads.fresh[note.id], !known.isOpen, location == known.target
      {
        ended.append(Ended(id: note.id, sealed: sealed))
      } else {
        try end(ended, me, now)
        ended = []
        try apply(note, me, now)
      }
    }
    try end(ended, me, now)
  }

  /// The notes without those that the end of the same upload makes superfluous. Both come together when a server is near:
  /// it announces an upload, and has stored it a moment later.
  private func withoutSuperseded(_ notes: [JournalNote]) -> [JournalNote] {
    if !notes.contains(where: { $0.event.isState }) { return notes }
    var isDone: [Int64: Bool] = [:]
    var left: [JournalNote] = []
    for note in notes.reversed() {
      // The row of an upload whose length is unknown has the acknowledged bytes in its place.
      if note.event.isState, isDone[note.id] == true, uploads.fresh[note.id] != nil {
        uploads.sent.log.drop(note.id)
        continue
      }
      var ends = false
      if case .done(_, _, keepsChecksums: false, _, _) = note.event { ends = true }
      isDone[note.id] = ends
      left.append(note)
    }
    return left.reversed()
  }

  /// An upload that has ended. `sealed`: as in the note.
  private struct Ended {
    var id: Int64
    var sealed: SealedContent?
  }

  /// Marks entries as done that this store has created and whose location is their target. Consecutive ids are updated
  /// by one statement.
  private func end(_ ended: [Ended], _ me: Int64, _ now: Int64) throws(SQLiteError) {
    var rest = ended.sorted { $0.id < $1.id }[...]
    while let first = rest.first?.id {
      let count = rest.enumerated().first { $1.id != first + Int64($0) }?.0 ?? rest.count
      let run = rest.prefix(count)
      rest.removeFirst(count)
      if count > 1, try end(from: first, count, me, now) {
        for ended in run {
          if let known = uploads.fresh.removeValue(forKey: ended.id) { uploads.count(known.destination, known.bytes) }
          if let sealed = ended.sealed { try uploads.contents.keep(sealed, of: ended.id) }
        }
        if run.contains(where: { $0.sealed != nil }) {
          try uploads.seals.remove(from: first, through: first + Int64(count) - 1)
        }
        if try replaced.mayReplace(run.map(\.id)) {
          try replaced.forgetReplaced(by: first, through: first + Int64(count) - 1)
        }
        for ended in run { try rows.giveUpOthers(of: ended.id) }
      } else {
        // Some row has another state: each entry is updated on its own.
        for ended in run {
          try apply(
            JournalNote(
              id: ended.id,
              event: .done(
                location: uploads.fresh[ended.id]?.target, length: nil, keepsChecksums: false, replaces: true,
                sealed: ended.sealed)),
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
    if case .sealing(let box) = note.event { return try uploads.seals.keep(box, of: note.id, owner: me) }
    if case .done(_, _, _, _, sealed: .some) = note.event { try uploads.seals.remove(note.id) }
    var known = uploads.fresh.removeValue(forKey: note.id)
    // An entry that was never done is in the record of places, which tells whether another one may have its place.
    func mayReplace() throws(SQLiteError) -> Bool {
      if known == nil { return true }
      return try replaced.mayReplace(CollectionOfOne(note.id))
    }
    if let known, !known.isOpen,
      case .done(let location, _, keepsChecksums: false, let replaces, let sealed) = note.event,
      try end(note.id, known.bytes, location, me, now)
    {
      if let sealed { try uploads.contents.keep(sealed, of: note.id) }
      uploads.count(known.destination, known.bytes)
      if replaces, try mayReplace() { try replaced.forgetReplaced(by: note.id, through: note.id) }
      try rows.giveUpOthers(of: note.id)
      return
    }
    guard var row = try UploadFacts(of: note.id, in: database),
      row.owner == me || row.isFree && note.needsNoClaim(isDone: row.isDone || row.isSuperseded)
    else { return }
    switch note.event {
    case .done(let location, let length, let keepsChecksums, let replaces, let sealed):
      if !row.hasLength, let length { row.bytes = length }
      if keepsChecksums { try uploads.sent.keepSent(note.id, me, hasSucceeded: true) }
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
      uploads.count(row.destination, row.bytes)
      if !keepsChecksums, row.hasSession { try uploads.removeTraces(note.id) }
      if let sealed { try uploads.contents.keep(sealed, of: note.id) }
      if replaces, try mayReplace() { try replaced.forgetReplaced(by: note.id, through: note.id) }
      try rows.giveUpOthers(of: note.id)
    case .opened(let session):
      let open = try database.statement("UPDATE upload SET state = 1, session = ?3, updated = ?2 WHERE id = ?1")
      try open.bind(3, JSONColumn.encode(session))
      try run(open, note.id, now)
      known?.isOpen = true
      uploads.fresh[note.id] = known
    case .acknowledged(let offset):
      let acknowledge = try database.statement("UPDATE upload SET acknowledged = ?3, updated = ?2 WHERE id = ?1")
      try acknowledge.bind(3, offset)
      try run(acknowledge, note.id, now)
      known?.isOpen = true
      uploads.fresh[note.id] = known
    case .receipt(let receipt): try uploads.keep(receipt, note.id)
    case .failed(let message): try end(note.id, as: .failed, message, me, now)
    case .refused(let message): try end(note.id, as: .refused, message, me, now)
    case .restarted, .abandoned:
      if case .abandoned = note.event, row.hasSession {
        try uploads.setAside(note.id, as: try uploads.nextID(), nil, now)
      }
      if row.isDone { uploads.uncount(row.destination, row.bytes) }
      try uploads.removeTraces(note.id)
      let restart = try database.statement(
        """
        UPDATE upload SET sent_length = CASE WHEN state = 2 THEN length ELSE sent_length END,
        state = 0, session = NULL, location = NULL, acknowledged = 0, owner = ?3, updated = ?2 WHERE id = ?1
        """)
      try restart.bind(3, me)
      try run(restart, note.id, now)
    case .recognized(let validator):
      try uploads.twins.forget(note.id)
      let recognize = try database.statement(
        "UPDATE upload SET version = ?3, instance = ?4, updated = ?2 WHERE id = ?1")
      try recognize.bind(3, validator.version)
      try recognize.bind(4, validator.instance)
      try run(recognize, note.id, now)
    case .kept: try replaced.reinstate(note.id, row, me, now)
    case .doubted: try replaced.doubt(note.id, row, me, now)
    case .sealing: break
    case .released:
      try uploads.sent.keepSent(note.id, me)
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
    try uploads.sent.keepSent(id, me)
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
}
