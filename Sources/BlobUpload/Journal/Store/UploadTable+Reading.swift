import BlobSQLite
import Blobs

extension UploadTable {
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

  /// The uploads of a source with keys in this range.
  func entries(of source: BytePath, from: String, to: String) throws(SQLiteError) -> [JournalEntry] {
    let select = try database.statement(
      """
      SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
      version, instance, content_type, location, error, session, sent_length FROM upload
      INDEXED BY sqlite_autoindex_upload_1 WHERE target >= ?1 AND target < ?2 AND source = ?3
      """)
    try select.bind(1, from)
    try select.bind(2, to)
    try select.bind(3, source.bytes)
    return try entries(select)
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

  func finished(
    after id: Int64, _ limit: Int, _ destinations: Set<Int64>?, since time: Int64
  ) throws(SQLiteError) -> [JournalEntry] {
    let select = try database.statement(
      """
      SELECT id, destination, state, owner, length, acknowledged, part_size, created, updated, target, source, path,
      version, instance, content_type, location, error, session, sent_length FROM upload WHERE state = 2 AND id > ?1
      AND (?3 IS NULL OR destination IN (SELECT value FROM json_each(?3))) AND updated >= ?4 ORDER BY id LIMIT ?2
      """)
    try select.bind(4, time)
    return try page(select, after: id, limit, destinations)
  }

  private func page(
    _ select: Statement, after id: Int64, _ limit: Int, _ destinations: Set<Int64>?
  ) throws(SQLiteError) -> [JournalEntry] {
    try select.bind(1, id)
    try select.bind(2, Int64(limit))
    try select.bind(3, destinations.map { JSONColumn.list($0) })
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

  /// Sums of more than 2^63 bytes are cut there: `sum` would throw, and sparse files may have any length.
  func summary() throws(SQLiteError) -> [JournalSummary] {
    let select = try database.statement(
      """
      SELECT destination, state, count(*), CAST(total(length) AS INTEGER), CAST(total(acknowledged) AS INTEGER)
      FROM upload INDEXED BY unfinished WHERE state <> 2 AND NOT (state = 4 AND location IS NOT NULL) GROUP BY destination, state
      UNION ALL SELECT destination, 2, count, bytes, bytes FROM finished WHERE count > 0
      ORDER BY destination, state
      """)
    defer { select.reset() }
    var sums: [JournalSummary] = []
    while try select.step() {
      sums.append(
        JournalSummary(
          destinationID: select.int(0), destination: try destinations.destination(select.int(0)),
          state: state(select, 1),
          count: Int(select.int(2)), bytes: select.int(3), acknowledged: select.int(4)))
    }
    return sums
  }

  private func entries(_ select: Statement) throws(SQLiteError) -> [JournalEntry] {
    defer { select.reset() }
    sent.forgetLookups()
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
    let session: UploadSession? = row.text(17).flatMap { JSONColumn.decode($0) }
    let ranges = session == nil ? [] : try sent.ranges(row.int(0), underWayBy: row.intOrNil(3))
    return JournalEntry(
      id: row.int(0),
      intent: JournalIntent(
        source: BytePath(row.blob(10) ?? []), target: target, recipient: recipient,
        path: BytePath(row.blob(11) ?? []),
        length: row.intOrNil(4),
        validator: row.text(12).map { Validator(version: $0, instance: row.text(13) ?? "") },
        contentType: row.text(14) ?? "", partSize: row.intOrNil(6)),
      destination: try destinations.destination(row.int(1)), destinationID: row.int(1), state: state(row, 2),
      session: session,
      receipts: session == nil ? [] : try receipts(row.int(0)),
      sent: ranges,
      sentLimit: session == nil
        ? 0 : try sent.sentLimit(row.int(0), ranges, acknowledged: row.int(5), underWayBy: row.intOrNil(3)),
      acknowledged: row.int(5),
      location: location == "" ? target : location, error: row.text(16), created: row.int(7), updated: row.int(8),
      owner: row.isNull(3) ? nil : try owners.live(row.int(3)),
      sentLength: state(row, 2) == .done ? row.intOrNil(4) : row.intOrNil(18), isLeftover: isLeftover,
      isSuperseded: [.refused, .intent].contains(state(row, 2)) && location != nil)
  }

  func receipts(_ id: Int64) throws(SQLiteError) -> [PartReceipt] {
    let select = try database.statement(
      "SELECT number, start, held, state FROM receipt WHERE upload = ?1 ORDER BY number")
    defer { select.reset() }
    try select.bind(1, id)
    var receipts: [PartReceipt] = []
    while try select.step() {
      // A part whose state cannot be decoded is skipped, and so sent again.
      guard let state: [String: String] = select.isNull(3) ? [:] : select.text(3).flatMap({ JSONColumn.decode($0) })
      else {
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

  /// Unclaimed leftover rows of a destination.
  func leftovers(at destination: Int64) throws(SQLiteError) -> [Int64] {
    let select = try database.statement(
      """
      SELECT id FROM upload INDEXED BY unfinished
      WHERE state <> 2 AND state = 4 AND owner IS NULL AND destination = ?1 AND target LIKE '%#left-' || id
      """)
    defer { select.reset() }
    try select.bind(1, destination)
    var ids: [Int64] = []
    while try select.step() { ids.append(select.int(0)) }
    return ids
  }

  func hasOther(than entry: Int64, at target: String) throws(SQLiteError) -> Bool {
    let select = try database.statement(
      """
      SELECT 1 FROM (
        SELECT destination, CASE WHEN instr(target, '#') THEN substr(target, instr(target, '#')) ELSE '' END AS recipient
        FROM upload WHERE id = ?2) AS own, upload
      WHERE upload.target = ?1 || own.recipient AND upload.destination = own.destination AND upload.id <> ?2 LIMIT 1
      """)
    try select.bind(1, target)
    try select.bind(2, entry)
    return try select.first { $0.int(0) } != nil
  }

  func sessions(at target: String, except entry: Int64) throws(SQLiteError) -> [UploadSession] {
    // In the order of bytes, `$` follows `#`.
    let select = try database.statement(
      """
      SELECT session FROM upload WHERE (target = ?1 OR target >= ?1 || '#' AND target < ?1 || '$') AND id <> ?2
      AND session IS NOT NULL
      """)
    defer { select.reset() }
    try select.bind(1, target)
    try select.bind(2, entry)
    var sessions: [UploadSession] = []
    while try select.step() {
      let session: UploadSession? = select.text(0).flatMap { JSONColumn.decode($0) }
      if let session { sessions.append(session) }
    }
    return sessions
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

  func history(
    ofNamesBeginning prefix: [UInt8], _ destination: Int64
  ) throws(SQLiteError) -> SourceHistory {
    var history = SourceHistory(hasSent: false, unfinished: 0)
    guard let last = prefix.last, last < .max else { return history }
    // The upper bound of all names with this prefix: the prefix with its last character replaced by the next one.
    let end = Array(prefix.dropLast()) + [last + 1]
    for id in try destinations.ids(at: destinations.destination(destination).place) {
      let unfinished = try database.statement(
        """
        SELECT count(*) FROM upload INDEXED BY unfinished
        WHERE state <> 2 AND destination = ?3 AND source >= ?1 AND source < ?2 AND target NOT LIKE '%#left-' || id
          AND NOT (state = 4 AND location IS NOT NULL)
        """)
      history.unfinished += Int(clamping: try first(unfinished, prefix, end, id) ?? 0)
      if history.hasSent { continue }
      let done = try database.statement(
        "SELECT 1 FROM upload WHERE state = 2 AND destination = ?3 AND source >= ?1 AND source < ?2 LIMIT 1")
      history.hasSent = try first(done, prefix, end, id) != nil
    }
    return history
  }

  private func first(
    _ select: Statement, _ prefix: [UInt8], _ end: [UInt8], _ destination: Int64
  ) throws(SQLiteError) -> Int64? {
    try select.bind(1, prefix)
    try select.bind(2, end)
    try select.bind(3, destination)
    return try select.first { $0.int(0) }
  }
}
