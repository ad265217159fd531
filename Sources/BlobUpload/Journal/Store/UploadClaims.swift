import BlobSQLite
import Blobs

/// Claims entries for this journal, and adds new ones.
final class UploadClaims {
  private let uploads: UploadTable
  private let replaced: ReplacedUploads
  private let rows: NamedRows
  private let database: Database
  /// Insert statements by their number of rows.
  private var inserts: [Int: Statement] = [:]

  init(_ uploads: UploadTable, _ replaced: ReplacedUploads, _ rows: NamedRows) {
    (self.uploads, self.replaced, self.rows, database) = (uploads, replaced, rows, uploads.database)
  }

  /// Must be called inside a transaction; `me` comes from `register`. If `sends`, an upload is `.busy` while another
  /// process sends any source to the same place, or has one of the other files of its photo.
  func claim(
    _ intents: [JournalIntent], destination: Int64, again: Bool, sends: Bool, as me: Int64
  ) throws(SQLiteError) -> [JournalClaim] {
    uploads.sent.forgetLookups()
    rows.note(intents.lazy.map(\.source))
    let senders = sends ? try otherSenders(of: intents, destination, again: again, me) : []
    if senders.allSatisfy({ $0 == nil }) { return try claimFree(intents, destination: destination, again: again, me) }
    let free = zip(intents, senders).filter { $1 == nil }.map(\.0)
    var claims = try claimFree(free, destination: destination, again: again, me)[...]
    return senders.map { $0.map { .busy($0) } ?? claims.removeFirst() }
  }

  /// For each intent, the live process because of which it is not claimed now; empty if there is no other process. While
  /// another process has a file of a photo, the others that are not done are left to it, as nobody else could keep their order.
  private func otherSenders(
    of intents: [JournalIntent], _ destination: Int64, again: Bool, _ me: Int64
  ) throws(SQLiteError) -> [ProcessIdentity?] {
    var senders = try replaced.otherSenders(to: intents, destination, me)
    if senders.isEmpty { return [] }
    var owners: [BytePath: ProcessIdentity] = [:]
    var left: [(place: Int, group: BytePath)] = []
    for (place, intent) in intents.enumerated() {
      guard let group = intent.relatives.group else { continue }
      let entry = try uploads.entry(intent.key, intent.source)
      if let owner = senders[place] ?? entry?.owner, owner != uploads.owners.mark {
        owners[group] = owner
      } else if entry.map({ isSettled($0, for: intent, again: again) }) != true {
        left.append((place, group))
      }
    }
    for (place, group) in left { senders[place] = owners[group] }
    return senders
  }

  private func claimFree(
    _ intents: [JournalIntent], destination: Int64, again: Bool, _ me: Int64
  ) throws(SQLiteError) -> [JournalClaim] {
    let now = currentSeconds()
    var (claims, next): ([JournalClaim], _) = ([], try uploads.nextID())
    claims.reserveCapacity(intents.count)
    // Consecutive intents are usually all new or all known from an earlier run; new ones need only one statement.
    var (isKnown, together, place) = (false, 1, 0)
    while place < intents.count {
      if isKnown, let entry = try uploads.entry(intents[place].key, intents[place].source) {
        claims.append(try claim(entry, for: intents[place], destination, again: again, me, now))
        // The replaced upload may have become a new entry.
        if case .replaced = claims[claims.count - 1] { next = try uploads.nextID() }
        place += 1
        continue
      }
      let places = place..<min(place + together, intents.count)
      place = places.upperBound
      (isKnown, together) = (false, Self.together)
      for (place, isNew) in zip(places, try insert(intents[places], from: next, destination, me, now)) {
        if isNew {
          claims.append(.fresh(next))
          replaced.targets.note(intents[place].target, of: next)
          uploads.fresh[next] = intents[place].length.map {
            UploadTable.Fresh(destination: destination, bytes: $0, target: intents[place].target)
          }
        } else if let entry = try uploads.entry(intents[place].key, intents[place].source) {
          claims.append(try claim(entry, for: intents[place], destination, again: again, me, now))
          (isKnown, together) = (true, 1)
        }
        next += 1
      }
      if isKnown { next = max(next, try uploads.nextID()) }
    }
    return claims
  }

  /// Must be called inside a transaction; `me` comes from `register`.
  func claim(entries ids: [Int64], as me: Int64) throws(SQLiteError) -> [JournalClaim] {
    uploads.sent.forgetLookups()
    let now = currentSeconds()
    var claims: [JournalClaim] = []
    for id in ids {
      guard let entry = try uploads.entry(id: id) else {
        throw SQLiteError("claim", database.path, code: 12, "entry \(id) is no longer in it")
      }
      if let owner = entry.owner {
        claims.append(.busy(owner))
      } else if entry.state == .done {
        claims.append(.done(entry))
      } else {
        rows.note([entry.intent.source])
        claims.append(.resume(try resume(entry, entry.intent, entry.destinationID, me, now)))
      }
    }
    return claims
  }

  /// Must be called inside a transaction; `me` comes from `register`. As `Journal.giveUp`, for entries that are not done.
  func giveUp(_ entries: [JournalEntry], as me: Int64) throws(SQLiteError) -> [JournalEntry] {
    uploads.sent.forgetLookups()
    let now = currentSeconds()
    var givenUp: [JournalEntry] = []
    for known in entries {
      // Since it was read, another process may have claimed the entry, or ended it.
      guard let entry = try uploads.entry(id: known.id), entry.owner == nil, entry.state != .done else { continue }
      if !entry.isLeftover { try uploads.giveUp(entry.id, entry.intent.key) }
      // An entry without a session is gone.
      let left = try uploads.entry(id: entry.id).map { left throws(SQLiteError) in
        try resume(left, left.intent, left.destinationID, me, now)
      }
      givenUp.append(left ?? entry)
    }
    return givenUp
  }

  private func claim(
    _ entry: JournalEntry, for intent: JournalIntent, _ destination: Int64, again: Bool, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> JournalClaim {
    if let owner = entry.owner { return .busy(owner) }
    let match = intent.match(with: entry.intent)
    if isSettled(entry, for: intent, again: again) {
      if !entry.isSuperseded { try rows.giveUpOthers(of: entry.id) }
      return .done(entry)
    }
    if entry.state == .done || entry.isSuperseded {
      if entry.state == .done { try uploads.unindexed.keepName(of: entry.id) }
      try reset(entry, intent, destination, me, now)
      return match == .different ? .replaced(entry.id, old: entry) : .fresh(entry.id)
    }
    if entry.session != nil, try !goesOn(entry.destination, as: uploads.destinations.destination(destination)) {
      // The caller abandons the old session, so that the server deletes its data.
      return try replace(entry, intent, destination, me, now)
    }
    if match == .same { return .resume(try resume(entry, intent, destination, me, now)) }
    if match == .unsure {
      try uploads.twins.forget(entry.id)
      let entry = try resume(entry, intent, destination, me, now)
      if entry.session != nil { return .unsure(entry) }
      // Without a session, no bytes of different versions can be mixed. A key must never seal two versions.
      try uploads.seals.remove(entry.id)
      return .resume(entry)
    }
    return try replace(entry, intent, destination, me, now)
  }

  /// Whether the same version was sent before, and is not to be sent again.
  private func isSettled(_ entry: JournalEntry, for intent: JournalIntent, again: Bool) -> Bool {
    (entry.state == .done || entry.isSuperseded) && !again && intent.match(with: entry.intent) != .different
  }

  /// Turns the row into a new intent. What the server may have of the old upload becomes a separate row.
  private func replace(
    _ old: JournalEntry, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> JournalClaim {
    var left = old
    if old.session != nil {
      left = old.leftover(as: try uploads.nextID())
      try uploads.setAside(old.id, as: left.id, me, now)
    }
    try reset(old, intent, destination, me, now)
    return .replaced(old.id, old: left)
  }

  /// Rows inserted by one statement: executing a statement costs a third as much as inserting a row.
  private static let together = 16

  /// Inserts rows with consecutive ids from `id`. An element of the result is false if a row with that target and
  /// source exists; its id stays unused.
  private func insert(
    _ intents: ArraySlice<JournalIntent>, from id: Int64, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> [Bool] {
    let insert = try insert(rows: intents.count)
    try insert.bind(1, destination)
    try insert.bind(2, me)
    try insert.bind(3, now)
    var index: Int32 = 4
    for place in intents.indices {
      try bind(insert, intents[place], from: index)
      try insert.bind(index + 6, intents[place].key)
      try insert.bind(index + 7, intents[place].source.bytes)
      try insert.bind(index + 8, id + Int64(place - intents.startIndex))
      index += 9
    }
    try insert.run()
    if database.changes == intents.count { return Array(repeating: true, count: intents.count) }
    if intents.count == 1 { return [false] }
    let select = try database.statement("SELECT id FROM upload WHERE id BETWEEN ?1 AND ?2")
    try select.bind(1, id)
    try select.bind(2, id + Int64(intents.count) - 1)
    var isNew = Array(repeating: false, count: intents.count)
    while try select.step() { isNew[Int(select.int(0) - id)] = true }
    return isNew
  }

  private func insert(rows: Int) throws(SQLiteError) -> Statement {
    if let kept = inserts[rows] {
      // An error may have left the statement unfinished.
      kept.reset()
      return kept
    }
    let values = (0..<rows).map { row in
      "(0, 0, ?1, ?2, ?3, ?3, " + (4...12).map { "?\($0 + 9 * row)" }.joined(separator: ", ") + ")"
    }
    let insert = try database.prepare(
      """
      INSERT INTO upload(state, acknowledged, destination, owner, created, updated, length, part_size, path, version,
      instance, content_type, target, source, id) VALUES \(values.joined(separator: ", "))
      ON CONFLICT(target, source) DO NOTHING
      """)
    inserts[rows] = insert
    return insert
  }

  /// Turns the row into a new intent, as if it had just been inserted.
  private func reset(
    _ old: JournalEntry, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) {
    if old.state == .done { uploads.uncount(old.destinationID, old.acknowledged) }
    try uploads.removeTraces(old.id)
    try uploads.seals.remove(old.id)
    try uploads.twins.forget(old.id)
    let update = try database.statement(
      """
      UPDATE upload SET sent_length = CASE WHEN state = 2 THEN length ELSE sent_length END,
      state = 0, acknowledged = 0, destination = ?1, owner = ?2, created = ?3, updated = ?3, length = ?4, part_size = ?5,
      path = ?6, version = ?7, instance = ?8, content_type = ?9, location = NULL, error = NULL, session = NULL
      WHERE id = ?10
      """)
    try bind(update, intent, destination, me, now)
    try update.bind(10, old.id)
    try update.run()
  }

  /// A session cannot continue with another protocol. Whether an upload may overwrite is decided when it starts: a
  /// session that may overwrite must not continue for a push that may not.
  private func goesOn(_ old: JournalDestination, as new: JournalDestination) -> Bool {
    new.protocolName == old.protocolName && new.overwrite == old.overwrite
  }

  /// Claims the row without changing its session. If there is no session yet, the row gets the new intent.
  private func resume(
    _ entry: JournalEntry, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) -> JournalEntry {
    let next = try uploads.destinations.destination(destination)
    let session = goesOn(entry.destination, as: next) ? entry.session : nil
    if session == nil { try uploads.removeTraces(entry.id) }
    let entry = JournalEntry(
      id: entry.id, intent: session == nil ? intent : entry.intent, destination: next, destinationID: destination,
      state: entry.isLeftover ? .refused : session == nil ? .intent : .open, session: session,
      receipts: session == nil ? [] : entry.receipts, sent: session == nil ? [] : entry.sent,
      sentLimit: entry.sentLimit, acknowledged: session == nil ? 0 : entry.acknowledged, location: entry.location,
      error: nil, created: entry.created, updated: now, owner: uploads.owners.mark, sentLength: entry.sentLength,
      isLeftover: entry.isLeftover, isSuperseded: entry.isSuperseded)
    let update = try database.statement(
      """
      UPDATE upload SET destination = ?1, owner = ?2, updated = ?3, length = ?4, part_size = ?5, path = ?6,
      version = ?7, instance = ?8, content_type = ?9, error = NULL, state = ?10, acknowledged = ?11,
      session = CASE WHEN ?13 THEN session END WHERE id = ?12
      """)
    try bind(update, entry.intent, destination, me, now)
    try update.bind(10, Int64(entry.state.rawValue))
    try update.bind(11, entry.acknowledged)
    try update.bind(12, entry.id)
    try update.bind(13, entry.session == nil ? 0 : 1)
    try update.run()
    return entry
  }

  private func bind(
    _ statement: Statement, _ intent: JournalIntent, _ destination: Int64, _ me: Int64, _ now: Int64
  ) throws(SQLiteError) {
    try statement.bind(1, destination)
    try statement.bind(2, me)
    try statement.bind(3, now)
    try bind(statement, intent, from: 4)
  }

  /// Binds six values, all except those that identify the entry.
  private func bind(_ statement: Statement, _ intent: JournalIntent, from index: Int32) throws(SQLiteError) {
    try statement.bind(index, intent.length)
    try statement.bind(index + 1, intent.partSize)
    try statement.bind(index + 2, intent.path.bytes)
    try statement.bind(index + 3, intent.validator?.version)
    try statement.bind(index + 4, intent.validator?.instance)
    try statement.bind(index + 5, intent.contentType)
  }
}
