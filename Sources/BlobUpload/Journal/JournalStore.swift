import BlobSQLite
import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The journal's tables, and the statements on them. Belongs to the journal's thread.
final class JournalStore {
  private let database: Database
  private let ownerID: Int64
  private let owner: ProcessMark
  private var destinations: [Int64: JournalDestination] = [:]

  init(_ path: BytePath, _ owner: ProcessMark) throws(SQLiteError) {
    database = try Database(path)
    self.owner = owner
    try database.migrate(to: Self.version) { [database] found throws(SQLiteError) in
      if found == 0 { try database.execute(Self.schema) }
    }
    ownerID = try Self.register(owner, database)
  }

  func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    try database.transaction(body)
  }

  private static func register(_ owner: ProcessMark, _ database: Database) throws(SQLiteError) -> Int64 {
    try database.transaction { () throws(SQLiteError) in
      let insert = try database.statement("INSERT INTO process (pid, boot, start) VALUES (?, ?, ?)")
      try insert.bind(1, Int64(owner.pid))
      try insert.bind(2, owner.boot)
      try insert.bind(3, Int64(bitPattern: owner.start))
      try insert.run()
      return database.lastInsertedID
    }
  }

  func destinationID(_ destination: JournalDestination) throws(SQLiteError) -> Int64 {
    let text = encoded(destination)
    let find = try database.statement("SELECT id FROM destination WHERE description = ?")
    try find.bind(1, text)
    if let id = try find.first({ $0.int(0) }) { return id }
    let insert = try database.statement("INSERT INTO destination (description) VALUES (?)")
    try insert.bind(1, text)
    try insert.run()
    return database.lastInsertedID
  }

  func destination(_ id: Int64) throws(SQLiteError) -> JournalDestination {
    if let known = destinations[id] { return known }
    let find = try database.statement("SELECT description FROM destination WHERE id = ?")
    try find.bind(1, id)
    let text = try find.first { $0.text(0) }
    let destination =
      decoded(JournalDestination.self, text ?? nil) ?? JournalDestination(endpoint: "", protocolName: "")
    destinations[id] = destination
    return destination
  }

  func claim(
    _ intents: [JournalIntent], destination: Int64, again: Bool
  ) throws(SQLiteError) -> [JournalClaim] {
    var claims: [JournalClaim] = []
    var alive: [Int64: ProcessMark?] = [:]
    for intent in intents { claims.append(try claim(intent, destination, again, &alive)) }
    return claims
  }

  private func claim(
    _ intent: JournalIntent, _ destination: Int64, _ again: Bool, _ alive: inout [Int64: ProcessMark?]
  ) throws(SQLiteError) -> JournalClaim {
    guard let (old, owner) = try find(intent) else { return .fresh(try insert(intent, destination)) }
    if let owner {
      if alive[owner] == nil { alive[owner] = try liveProcess(owner) }
      if let mark = alive[owner] ?? nil { return .busy(mark) }
    }
    let likeness = likeness(old.intent.validator, intent.validator)
    switch old.state {
    case .done where !again && likeness != .different && old.intent.length == intent.length: return .done(old)
    case .intent, .open, .failed:
      if likeness == .same && old.intent.length == intent.length {
        try take(old.id, destination)
        return .resume(old)
      }
    case .done: break
    }
    try renew(old.id, intent, destination)
    return .replaced(old.id, old: old)
  }

  /// Without a validator no version can be told from another, so none is taken for the same.
  private func likeness(_ old: Validator?, _ new: Validator?) -> Validator.Likeness {
    guard let old, let new else { return .different }
    return new.likeness(to: old)
  }

  private func find(_ intent: JournalIntent) throws(SQLiteError) -> (JournalEntry, Int64?)? {
    let find = try database.statement(
      """
      SELECT id, target, source, destination, path, length, version, instance, type, part_size, state, acknowledged,
        session, location, error, created, updated, owner FROM upload WHERE target = ? AND source = ?
      """)
    try find.bind(1, intent.target)
    try find.bind(2, intent.source.bytes)
    defer { find.reset() }
    return try find.step() ? (try entry(find), find.intOrNil(17)) : nil
  }

  private func insert(_ intent: JournalIntent, _ destination: Int64) throws(SQLiteError) -> Int64 {
    let insert = try database.statement(
      """
      INSERT INTO upload (target, source, destination, path, length, version, instance, type, part_size, owner,
        created, updated, state, acknowledged) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, 0, 0)
      """)
    try bind(intent, destination, to: insert)
    try insert.run()
    return database.lastInsertedID
  }

  private func renew(_ id: Int64, _ intent: JournalIntent, _ destination: Int64) throws(SQLiteError) {
    let update = try database.statement(
      """
      UPDATE upload SET target = ?1, source = ?2, destination = ?3, path = ?4, length = ?5, version = ?6, instance = ?7,
        type = ?8, part_size = ?9, owner = ?10, created = ?11, updated = ?11, state = 0, acknowledged = 0,
        session = NULL, location = NULL, error = NULL WHERE id = ?12
      """)
    try bind(intent, destination, to: update)
    try update.bind(12, id)
    try update.run()
  }

  private func bind(_ intent: JournalIntent, _ destination: Int64, to statement: Statement) throws(SQLiteError) {
    try statement.bind(1, intent.target)
    try statement.bind(2, intent.source.bytes)
    try statement.bind(3, destination)
    try statement.bind(4, intent.path.bytes)
    try statement.bind(5, intent.length)
    try statement.bind(6, intent.validator?.version)
    try statement.bind(7, intent.validator?.instance)
    try statement.bind(8, intent.contentType)
    try statement.bind(9, intent.partSize)
    try statement.bind(10, ownerID)
    try statement.bind(11, now())
  }

  private func take(_ id: Int64, _ destination: Int64) throws(SQLiteError) {
    let update = try database.statement("UPDATE upload SET owner = ?, destination = ?, updated = ? WHERE id = ?")
    try update.bind(1, ownerID)
    try update.bind(2, destination)
    try update.bind(3, now())
    try update.bind(4, id)
    try update.run()
  }

  func releaseAll() throws(SQLiteError) {
    let update = try database.statement("UPDATE upload SET owner = NULL WHERE owner = ?")
    try update.bind(1, ownerID)
    try update.run()
    let delete = try database.statement("DELETE FROM process WHERE id = ?")
    try delete.bind(1, ownerID)
    try delete.run()
  }

  /// The process that owns claims under this number, if it still runs. Its own claims are no one else's.
  private func liveProcess(_ id: Int64) throws(SQLiteError) -> ProcessMark? {
    let find = try database.statement("SELECT pid, boot, start FROM process WHERE id = ?")
    try find.bind(1, id)
    let mark = try find.first { row in
      ProcessMark(pid: Int32(row.int(0)), boot: row.text(1) ?? "", start: UInt64(bitPattern: row.int(2)))
    }
    guard let mark, mark.isAlive else { return nil }
    return mark
  }

  func entries(_ states: [JournalEntry.State], limit: Int) throws(SQLiteError) -> [JournalEntry] {
    var found: [JournalEntry] = []
    for state in states {
      let find = try database.statement(
        """
        SELECT id, target, source, destination, path, length, version, instance, type, part_size, state, acknowledged,
          session, location, error, created, updated, owner FROM upload WHERE state = ? ORDER BY id DESC LIMIT ?
        """)
      try find.bind(1, Int64(state.rawValue))
      try find.bind(2, Int64(limit))
      var owners: [(Int, Int64)] = []
      while try find.step() {
        if let owner = find.intOrNil(17) { owners.append((found.count, owner)) }
        found.append(try entry(find))
      }
      for (index, owner) in owners { found[index].owner = try liveProcess(owner) }
    }
    return found.sorted { $0.id < $1.id }
  }

  func summary() throws(SQLiteError) -> [JournalSummary] {
    let find = try database.statement(
      """
      SELECT destination, state, COUNT(*), SUM(length), SUM(acknowledged) FROM upload GROUP BY destination, state
      ORDER BY destination, state
      """)
    var found: [JournalSummary] = []
    while try find.step() {
      found.append(
        JournalSummary(
          destination: try destination(find.int(0)), state: JournalEntry.State(rawValue: Int(find.int(1))) ?? .failed,
          count: Int(find.int(2)), bytes: find.int(3), acknowledged: find.int(4)))
    }
    return found
  }

  func remove(_ ids: [Int64]) throws(SQLiteError) {
    let delete = try database.statement("DELETE FROM upload WHERE id = ?")
    for id in ids {
      try delete.bind(1, id)
      try delete.run()
    }
  }

  private func entry(_ row: Statement) throws(SQLiteError) -> JournalEntry {
    let validator = row.text(6).map { Validator(version: $0, instance: row.text(7) ?? "") }
    let intent = JournalIntent(
      source: BytePath(row.blob(2) ?? []), target: row.text(1) ?? "", path: BytePath(row.blob(4) ?? []),
      length: row.intOrNil(5), validator: validator, contentType: row.text(8) ?? "", partSize: row.intOrNil(9))
    return JournalEntry(
      id: row.int(0), intent: intent, destination: try destination(row.int(3)), destinationID: row.int(3),
      state: JournalEntry.State(rawValue: Int(row.int(10))) ?? .failed,
      session: decoded(UploadSession.self, row.text(12)), receipts: [], acknowledged: row.int(11),
      location: row.text(13), error: row.text(14), created: row.int(15), updated: row.int(16), owner: nil)
  }
}

extension JournalStore {
  func apply(_ note: JournalNote) throws(SQLiteError) {
    switch note {
    case .opened(let id, let session):
      let update = try database.statement("UPDATE upload SET state = 1, session = ?, updated = ? WHERE id = ?")
      try update.bind(1, encoded(session))
      try finish(update, 2, id)
    case .acknowledged(let id, let offset):
      let update = try database.statement("UPDATE upload SET acknowledged = ?, updated = ? WHERE id = ?")
      try update.bind(1, offset)
      try finish(update, 2, id)
    case .done(let id, let location):
      let update = try database.statement(
        """
        UPDATE upload SET state = 2, location = ?, acknowledged = COALESCE(length, acknowledged), session = NULL,
          error = NULL, owner = NULL, updated = ? WHERE id = ?
        """)
      try update.bind(1, location)
      try finish(update, 2, id)
    case .failed(let id, let message):
      let update = try database.statement(
        "UPDATE upload SET state = 3, error = ?, owner = NULL, updated = ? WHERE id = ?")
      try update.bind(1, message)
      try finish(update, 2, id)
    case .restarted(let id):
      let update = try database.statement(
        "UPDATE upload SET state = 0, session = NULL, location = NULL, acknowledged = 0, updated = ? WHERE id = ?")
      try finish(update, 1, id)
    case .released(let id):
      let update = try database.statement("UPDATE upload SET owner = NULL, updated = ? WHERE id = ?")
      try finish(update, 1, id)
    }
  }

  private func finish(_ update: Statement, _ index: Int32, _ id: Int64) throws(SQLiteError) {
    try update.bind(index, now())
    try update.bind(index + 1, id)
    try update.run()
  }

  fileprivate static let version: Int64 = 1

  /// `state` has no index: what is unfinished is looked for once a run, what is done once for each file.
  fileprivate static let schema = """
    CREATE TABLE destination (id INTEGER PRIMARY KEY, description TEXT NOT NULL UNIQUE);
    CREATE TABLE process (id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL, boot TEXT NOT NULL,
      start INTEGER NOT NULL);
    CREATE TABLE upload (id INTEGER PRIMARY KEY, target TEXT NOT NULL, source BLOB NOT NULL,
      destination INTEGER NOT NULL, path BLOB NOT NULL, length INTEGER, version TEXT, instance TEXT, type TEXT NOT NULL,
      part_size INTEGER, state INTEGER NOT NULL, acknowledged INTEGER NOT NULL, session TEXT, location TEXT, error TEXT,
      created INTEGER NOT NULL, updated INTEGER NOT NULL, owner INTEGER, UNIQUE (target, source));
    """
}

/// Dictionaries are written in a fixed order, so that equal values are equal text.
private func encoded(_ value: some Encodable) -> String? {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  // Strings and numbers always encode.
  return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
}

/// nil for NULL, and for what a person or another program has broken: then it is as if there were no session.
private func decoded<Value: Decodable>(_ type: Value.Type, _ text: String?) -> Value? {
  text.flatMap { try? JSONDecoder().decode(type, from: Data($0.utf8)) }
}

private func now() -> Int64 { Int64(time(nil)) }
