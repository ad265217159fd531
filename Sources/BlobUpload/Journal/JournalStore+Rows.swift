import BlobSQLite
import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension JournalStore {
  func destinationID(_ destination: JournalDestination) throws(SQLiteError) -> Int64 {
    let text = json(destination)
    return try transaction { () throws(SQLiteError) in
      let select = try database.statement("SELECT id FROM destination WHERE json = ?1")
      try select.bind(1, text)
      if let id = try select.first({ $0.int(0) }) { return id }
      if let id = try adopt(destination, text) { return id }
      let insert = try database.statement("INSERT INTO destination(json) VALUES(?1)")
      try insert.bind(1, text)
      try insert.run()
      let id = database.lastInsertedID
      try takeOverForms(of: destination, id)
      return id
    }
  }

  func destination(_ id: Int64) throws(SQLiteError) -> JournalDestination {
    if let known = destinations[id] { return known }
    let select = try database.statement("SELECT json FROM destination WHERE id = ?1")
    try select.bind(1, id)
    guard let text = try select.first({ $0.text(0) }), let text, let found: JournalDestination = value(text) else {
      throw SQLiteError("read destination \(id)", database.path, code: 11, "it is missing or cannot be understood")
    }
    destinations[id] = found
    return found
  }

  // The columns must be in the order that `entry(row:)` expects.
  func entry(id: Int64) throws(SQLiteError) -> JournalEntry? {
    let select = try database.statement(
      """
      SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
      version, instance, content_type, location, error, session, sent_length FROM upload WHERE id = ?1
      """)
    try select.bind(1, id)
    return try select.first { row throws(SQLiteError) in try entry(row: row) }
  }

  func entry(_ target: String, _ source: BytePath) throws(SQLiteError) -> JournalEntry? {
    let select = try database.statement(
      """
      SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
      version, instance, content_type, location, error, session, sent_length FROM upload WHERE target = ?1 AND source = ?2
      """)
    try select.bind(1, target)
    try select.bind(2, source.bytes)
    return try select.first { row throws(SQLiteError) in try entry(row: row) }
  }

  func sources(of target: String) throws(SQLiteError) -> [BytePath] {
    let select = try database.statement("SELECT source FROM upload WHERE target = ?1")
    defer { select.reset() }
    try select.bind(1, target)
    var sources: [BytePath] = []
    while try select.step() { sources.append(BytePath(select.blob(0) ?? [])) }
    return sources
  }

  func unfinished(
    after id: Int64, _ limit: Int, _ destinations: Set<Int64>?
  ) throws(SQLiteError) -> [JournalEntry] {
    try buryDead()
    return try page(
      database.statement(
        """
        SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
        version, instance, content_type, location, error, session, sent_length FROM upload INDEXED BY unfinished WHERE state <> 2
        AND NOT (state = 4 AND location IS NOT NULL) AND id > ?1
        AND (?3 IS NULL OR destination IN (SELECT value FROM json_each(?3))) ORDER BY id LIMIT ?2
        """), after: id, limit, destinations)
  }

  func lastID() throws(SQLiteError) -> Int64 {
    try database.statement("SELECT ifnull(max(id), 0) FROM upload").first { $0.int(0) } ?? 0
  }

  func finished(after id: Int64, _ limit: Int, _ destinations: Set<Int64>?) throws(SQLiteError) -> [JournalEntry] {
    try page(
      database.statement(
        """
        SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
        version, instance, content_type, location, error, session, sent_length FROM upload WHERE state = 2 AND id > ?1
        AND (?3 IS NULL OR destination IN (SELECT value FROM json_each(?3))) ORDER BY id LIMIT ?2
        """), after: id, limit, destinations)
  }

  private func page(
    _ select: Statement, after id: Int64, _ limit: Int, _ destinations: Set<Int64>?
  ) throws(SQLiteError) -> [JournalEntry] {
    try select.bind(1, id)
    try select.bind(2, Int64(limit))
    try select.bind(3, destinations.map { "[\($0.map(String.init).joined(separator: ","))]" })
    return try entries(select)
  }

  /// The latest entries, the oldest of them first.
  func entries(_ state: JournalEntry.State, limit: Int) throws(SQLiteError) -> [JournalEntry] {
    // Only unfinished rows are indexed, because most rows of a journal are done.
    let select =
      state == .done
      ? try database.statement(
        """
        SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
        version, instance, content_type, location, error, session, sent_length FROM upload WHERE state = ?1
        ORDER BY id DESC LIMIT ?2
        """)
      : try database.statement(
        """
        SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
        version, instance, content_type, location, error, session, sent_length FROM upload INDEXED BY unfinished WHERE state <> 2 AND state = ?1
        AND NOT (state = 4 AND location IS NOT NULL) ORDER BY id DESC LIMIT ?2
        """)
    try select.bind(1, Int64(state.rawValue))
    try select.bind(2, Int64(limit))
    return try entries(select).reversed()
  }

  func summary() throws(SQLiteError) -> [JournalSummary] {
    let select = try database.statement(
      """
      SELECT destination, state, count(*), ifnull(sum(length), 0), sum(acknowledged)
      FROM upload INDEXED BY unfinished WHERE state <> 2 AND NOT (state = 4 AND location IS NOT NULL) GROUP BY destination, state
      UNION ALL SELECT destination, 2, count, bytes, bytes FROM finished WHERE count > 0
      ORDER BY destination, state
      """)
    defer { select.reset() }
    var sums: [JournalSummary] = []
    while try select.step() {
      sums.append(
        JournalSummary(
          destinationID: select.int(0), destination: try destination(select.int(0)), state: state(select, 1),
          count: Int(select.int(2)), bytes: select.int(3), acknowledged: select.int(4)))
    }
    return sums
  }

  func remove(_ ids: [Int64]) throws(SQLiteError) {
    try transaction { () throws(SQLiteError) in
      for id in ids {
        if let row = try glance(id) { try remove(id, row) }
      }
    }
  }

  /// Must be called inside a transaction.
  func remove(_ id: Int64, _ row: UploadRowFacts) throws(SQLiteError) {
    if row.isDone { uncount(row.destination, row.bytes) }
    try removeTraces(id)
    try run("DELETE FROM metadata WHERE upload = ?1", with: id)
    try run("DELETE FROM upload WHERE id = ?1", with: id)
    try run("UPDATE removed SET id = ?1 WHERE id < ?1", with: id)
  }

  func run(_ text: StaticString, with number: Int64) throws(SQLiteError) {
    let statement = try database.statement(text)
    try statement.bind(1, number)
    try statement.run()
  }

  private func entries(_ select: Statement) throws(SQLiteError) -> [JournalEntry] {
    defer { select.reset() }
    forgetLookups()
    var entries: [JournalEntry] = []
    while try select.step() { entries.append(try entry(row: select)) }
    return entries
  }

  private func entry(row: Statement) throws(SQLiteError) -> JournalEntry {
    var key = row.text(9) ?? ""
    let mark = JournalEntry.mark(ofLeftover: row.int(0))
    let isLeftover = key.hasSuffix(mark)
    if isLeftover { key.removeLast(mark.count) }
    let (target, recipient) = JournalIntent.parts(ofKey: key)
    let location = row.text(15)
    // A session that cannot be decoded is ignored: the upload starts again, and the server expires the old session.
    let session: UploadSession? = row.text(17).flatMap { value($0) }
    let sent = session == nil ? [] : try ranges(row.int(0), underWayBy: row.intOrNil(3))
    return JournalEntry(
      id: row.int(0),
      intent: JournalIntent(
        source: BytePath(row.blob(10) ?? []), target: target, recipient: recipient,
        path: BytePath(row.blob(11) ?? []),
        length: row.intOrNil(4),
        validator: row.text(12).map { Validator(version: $0, instance: row.text(13) ?? "") },
        contentType: row.text(14) ?? "", partSize: row.intOrNil(6)),
      destination: try destination(row.int(1)), destinationID: row.int(1), state: state(row, 2), session: session,
      receipts: session == nil ? [] : try receipts(row.int(0)),
      sent: sent,
      sentLimit: session == nil
        ? 0 : try sentLimit(row.int(0), sent, acknowledged: row.int(5), underWayBy: row.intOrNil(3)),
      acknowledged: row.int(5),
      location: location == "" ? target : location, error: row.text(16), created: row.int(7), updated: row.int(8),
      owner: row.isNull(3) ? nil : try liveOwner(row.int(3)),
      sentLength: state(row, 2) == .done ? row.intOrNil(4) : row.intOrNil(18), isLeftover: isLeftover,
      isSuperseded: state(row, 2) == .refused && location != nil)
  }

  func receipts(_ id: Int64) throws(SQLiteError) -> [PartReceipt] {
    let select = try database.statement(
      "SELECT number, start, held, state FROM receipt WHERE upload = ?1 ORDER BY number")
    defer { select.reset() }
    try select.bind(1, id)
    var receipts: [PartReceipt] = []
    while try select.step() {
      // A part whose state cannot be decoded is skipped, and so sent again.
      guard let state: [String: String] = select.isNull(3) ? [:] : select.text(3).flatMap({ value($0) }) else {
        continue
      }
      let (number, start, held) = (select.int(0), select.int(1), select.int(2))
      // Numbers that no part can have occur in damaged journals.
      guard number > 0, start >= 0, held >= 0, held <= .max - start else { continue }
      receipts.append(PartReceipt(number: Int(number), start: start, held: held, state: state))
    }
    return receipts
  }

  private func state(_ row: Statement, _ column: Int32) -> JournalEntry.State {
    JournalEntry.State(rawValue: Int(row.int(column))) ?? .failed
  }

  /// Equal values give the same text.
  func json(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Strings, numbers and dictionaries of them can always be encoded.
    return String(decoding: try! encoder.encode(value), as: UTF8.self)
  }

  func value<Value: Decodable>(_ text: String) -> Value? {
    // nil for invalid text; the callers decide what to do.
    try? JSONDecoder().decode(Value.self, from: Data(text.utf8))
  }
}
