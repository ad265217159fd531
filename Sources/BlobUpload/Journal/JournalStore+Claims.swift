import BlobSQLite
import Blobs

extension JournalStore {
  /// Inside a transaction; `me` is from `register`.
  func claim(
    _ intents: [JournalIntent], destination: Int64, again: Bool, as me: Int64
  ) throws(SQLiteError) -> [JournalClaim] {
    forgetLookups()
    let now = currentSeconds()
    var claims: [JournalClaim] = []
    claims.reserveCapacity(intents.count)
    var next = try nextID()
    // Neighbours are mostly alike: all new, or all known from an earlier run. Then one statement tells.
    var isKnown = false
    for intent in intents {
      var entry = isKnown ? try entry(intent.target, intent.source) : nil
      if entry == nil {
        if try insert(intent, next, destination, me, now) {
          claims.append(.fresh(next))
          fresh[next] = intent.length.map { (destination, $0) }
          next += 1
          isKnown = false
          continue
        }
        entry = try self.entry(intent.target, intent.source)
      }
      isKnown = true
      if let entry { claims.append(try claim(entry, for: intent, destination, again: again, me, now)) }
    }
    return claims
  }

  /// Inside a transaction; `me` is from `register`.
  func claim(entries ids: [Int64], as me: Int64) throws(SQLiteError) -> [JournalClaim] {
    forgetLookups()
    let now = currentSeconds()
    var claims: [JournalClaim] = []
    for id in ids {
      guard let entry = try entry(id: id) else {
        throw SQLiteError("claim", database.path, code: 12, "entry \(id) is no longer in it")
      }
      if let owner = entry.owner {
        claims.append(.busy(owner))
      } else if entry.state == .done {
        claims.append(.done(entry))
      } else {
        claims.append(.resume(try resume(entry, entry.intent, entry.destinationID, me, now)))
      }
    }
    return claims
  }

  private func claim(
    _ entry: JournalEntry, for intent: JournalIntent, _ destination: Int64, again: Bool, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> JournalClaim {
    if let owner = entry.owner { return .busy(owner) }
    let likeness = intent.likeness(to: entry.intent)
    if entry.state == .done {
      if likeness != .different && !again { return .done(entry) }
      try reset(entry, intent, destination, me, now)
      return likeness == .different ? .replaced(entry.id, old: entry) : .fresh(entry.id)
    }
    if likeness == .same { return .resume(try resume(entry, intent, destination, me, now)) }
    if likeness == .unsure {
      let entry = try resume(entry, intent, destination, me, now)
      // Without a session there is nothing that could be mixed.
      return entry.session == nil ? .resume(entry) : .unsure(entry)
    }
    try reset(entry, intent, destination, me, now)
    return .replaced(entry.id, old: entry)
  }

  /// One that no row has or had.
  private func nextID() throws(SQLiteError) -> Int64 {
    let select = try database.statement(
      "SELECT max(ifnull((SELECT max(id) FROM upload), 0), (SELECT id FROM removed)) + 1")
    return try select.first { $0.int(0) } ?? 1
  }

  /// False when there is a row for this target and source.
  private func insert(
    _ intent: JournalIntent, _ id: Int64, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> Bool {
    let insert = try database.statement(
      """
      INSERT INTO upload(state, acknowledged, destination, owner, length, part_size, created, updated, path, version,
      instance, content_type, target, source, id) VALUES(0, 0, ?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
      ON CONFLICT(target, source) DO NOTHING
      """)
    try bind(insert, intent, destination, me, now)
    try insert.bind(10, intent.target)
    try insert.bind(11, intent.source.bytes)
    try insert.bind(12, id)
    try insert.run()
    return database.changes == 1
  }

  /// Makes the row a new intent, as if it had just been inserted.
  private func reset(
    _ old: JournalEntry, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) {
    if old.state == .done { uncount(old.destinationID, old.acknowledged) }
    try removeTraces(old.id)
    let update = try database.statement(
      """
      UPDATE upload SET state = 0, acknowledged = 0, destination = ?1, owner = ?2, length = ?3, part_size = ?4,
      created = ?5, updated = ?5, path = ?6, version = ?7, instance = ?8, content_type = ?9, location = NULL,
      error = NULL, session = NULL WHERE id = ?10
      """)
    try bind(update, intent, destination, me, now)
    try update.bind(10, old.id)
    try update.run()
  }

  /// Takes the row over as it is. What a session was not opened with yet is taken from the new intent.
  private func resume(
    _ entry: JournalEntry, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> JournalEntry {
    var entry = entry
    let old = entry.destination
    entry.destination = try self.destination(destination)
    // A session of another dialect means nothing to this one, and one that must not overwrite cannot be told to later.
    if entry.destination.protocolName != old.protocolName || entry.destination.overwrite && !old.overwrite {
      (entry.session, entry.receipts, entry.sent, entry.acknowledged) = (nil, [], [], 0)
    }
    if entry.session == nil { (entry.intent, entry.acknowledged) = (intent, 0) }
    if entry.session == nil { try removeTraces(entry.id) }
    entry.state = entry.session == nil ? .intent : .open
    entry.destinationID = destination
    entry.error = nil
    entry.owner = mark
    entry.updated = now
    let update = try database.statement(
      """
      UPDATE upload SET destination = ?1, owner = ?2, length = ?3, part_size = ?4, updated = ?5, path = ?6,
      version = ?7, instance = ?8, content_type = ?9, error = NULL, state = ?10, acknowledged = ?11,
      session = CASE WHEN ?10 = 1 THEN session END WHERE id = ?12
      """)
    try bind(update, entry.intent, destination, me, now)
    try update.bind(10, Int64(entry.state.rawValue))
    try update.bind(11, entry.acknowledged)
    try update.bind(12, entry.id)
    try update.run()
    return entry
  }

  private func bind(
    _ statement: Statement, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) {
    try statement.bind(1, destination)
    try statement.bind(2, me)
    try statement.bind(3, intent.length)
    try statement.bind(4, intent.partSize)
    try statement.bind(5, now)
    try statement.bind(6, intent.path.bytes)
    try statement.bind(7, intent.validator?.version)
    try statement.bind(8, intent.validator?.instance)
    try statement.bind(9, intent.contentType)
  }
}
