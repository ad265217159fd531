import BlobPostgres
import BlobUpload
import Blobs

/// An item that was claimed.
package struct ClaimedItem: Sendable {
  package let id: Int64
  let fence: Int64
  /// The machine that has added it.
  package let machine: String
  package let upload: ResumableUpload
  package let parts: [PartReceipt]
  let bytes: Int64
}

extension QueueWorker {
  /// Claims items of a destination, the oldest first: at most `most`, and fewer large ones. Empty: none is free. Throws
  /// `LostClaims` once others have taken over what this worker had claimed.
  package func claim(at destination: Int64, most: Int = 128) throws(JournalError) -> [ClaimedItem] {
    if isLost { throw lost }
    if state.update(waking: .none, { $0.mayHaveMore }) { try releaseUnknown() }
    var rows = try claim(destination, queue.machine, most)
    if rows.isEmpty { rows = try claim(destination, "", most) }
    let parts = try parts(of: rows.compactMap { $0[3]?.contains("\"session\"") == true ? $0[0] : nil })
    var items: [ClaimedItem] = []
    for row in rows {
      guard let id = row[0].flatMap({ Int64($0) }), let fence = row[1].flatMap({ Int64($0) }) else { continue }
      guard let text = row[3], let upload: ResumableUpload = JSONColumn.decode(text), upload.intent != nil else {
        try end(id, fence, "what the queue has of it cannot be understood: push it again with this version of fullbore")
        continue
      }
      items.append(
        ClaimedItem(
          id: id, fence: fence, machine: row[2] ?? "", upload: upload, parts: parts[id] ?? [], bytes: upload.length ?? 0
        ))
    }
    state.update(waking: .none) { state in for item in items { state.open[item.id] = item.bytes } }
    return items.sorted { $0.id < $1.id }
  }

  private func claim(_ destination: Int64, _ bound: String, _ most: Int) throws(JournalError) -> [[String?]] {
    let key = "\(destination) \(bound)"
    while true {
      let cursor = state.update(waking: .none) { $0.cursors[key] ?? 0 }
      // If this throws, it is not known whether it has had an effect.
      var tries = 0
      defer { if tries > 0 { state.update(waking: .none) { $0.mayHaveMore = true } } }
      let rows = try queue.patiently({ isLost }) { (connection) throws(PostgresError) in
        tries += 1
        let rows = try connection.query(
          Self.claiming, [name, "\(destination)", bound, "\(cursor)", "\(most)", "\(Int64(256) << 20)"])
        if tries == 1 { tries = 0 }
        return rows
      }
      if let last = rows.compactMap({ $0[0].flatMap { Int64($0) } }).max() {
        state.update(waking: .none) { $0.cursors[key] = last }
        return rows
      }
      if cursor == 0 { return [] }
      state.update(waking: .none) { $0.cursors[key] = nil }
    }
  }

  // The ids are given as an array, so that the rows are found by the primary key, however many rows there are.
  private static let claiming = """
    WITH me AS MATERIALIZED (SELECT worker FROM fullbore.queue_workers WHERE worker = $1 FOR KEY SHARE),
    locked AS MATERIALIZED (
      SELECT id, length FROM fullbore.queue_items
      WHERE state = 0 AND destination = $2::bigint AND bound = $3 AND id > $4::bigint
      ORDER BY id LIMIT $5::integer FOR UPDATE SKIP LOCKED),
    chosen AS (
      SELECT id FROM (
        SELECT id, sum(coalesce(length, 0)) OVER (ORDER BY id) - coalesce(length, 0) AS before FROM locked) l
      WHERE before < $6::numeric)
    UPDATE fullbore.queue_items SET state = 1, worker = $1, fence = fence + 1, seq = 0, changed = clock_timestamp()
    WHERE id = ANY(ARRAY(SELECT id FROM chosen)) AND EXISTS (SELECT 1 FROM me)
    RETURNING id, fence, machine, record
    """

  /// Releases the items that this worker has claimed by a statement whose answer was lost.
  private func releaseUnknown() throws(JournalError) {
    let known = state.update(waking: .none) { Array($0.open.keys) }
    _ = try queue.query(
      """
      UPDATE fullbore.queue_items SET state = 0, fence = fence + 1, changed = clock_timestamp()
      WHERE state = 1 AND worker = $1 AND NOT id = ANY($2::bigint[])
      """, [name, array(known)])
    state.update(waking: .none) { state in
      state.mayHaveMore = false
      state.cursors = [:]
    }
  }

  private func parts(of items: [String]) throws(JournalError) -> [Int64: [PartReceipt]] {
    if items.isEmpty { return [:] }
    var parts: [Int64: [PartReceipt]] = [:]
    let rows = try queue.query(
      "SELECT item, number, start, held, state FROM fullbore.queue_parts WHERE item = ANY($1::bigint[])",
      ["{\(items.joined(separator: ","))}"])
    for row in rows {
      let numbers = row[..<4].map { $0.flatMap { Int64($0) } ?? -1 }
      // A part that cannot be understood is sent again.
      guard numbers[1] > 0, numbers[2] >= 0, numbers[3] >= 0, numbers[3] <= .max - numbers[2],
        let state: [String: String] = row[4].flatMap({ JSONColumn.decode($0) })
      else { continue }
      parts[numbers[0], default: []].append(
        PartReceipt(number: Int(numbers[1]), start: numbers[2], held: numbers[3], state: state))
    }
    return parts
  }

  /// Notes which entries of the process's journal the items are.
  package func hold(_ items: [(entry: Int64, item: ClaimedItem)]) {
    state.update(waking: .none) { state in
      for (entry, item) in items {
        state.held[entry] = HeldItem(
          item: item.id, fence: item.fence, machine: item.machine, hasParts: !item.parts.isEmpty)
      }
    }
  }

  /// Entries whose items have ended some time ago, and that the process's journal need not keep. They are forgotten here.
  package func takeEnded() -> [Int64] {
    state.update(waking: .none) { state in
      // A response may show later that one of the last uploads has to be made again.
      if state.ended.count < 8192 { return [] }
      let old = state.ended.prefix(4096).filter { state.held[$0]?.hasEnded == true }
      state.ended.removeFirst(4096)
      for entry in old { state.held[entry] = nil }
      return old
    }
  }

  /// Whether another machine has added the item of an entry.
  package func isFromElsewhere(_ entry: Int64) -> Bool {
    state.update(waking: .none) { $0.held[entry] }.map { $0.machine != queue.machine } ?? false
  }

  /// Ends the item of an entry whose source cannot be sent here. If another machine has added it, that one alone may claim it
  /// from now on, and the result is true. Otherwise it has failed.
  package func giveUp(_ entry: Int64, _ message: String) throws(JournalError) -> Bool {
    guard let held = state.update(waking: .none, { $0.held[entry] }) else { return false }
    let isElsewhere = held.machine != queue.machine
    try end(held.item, held.fence, isElsewhere ? nil : message)
    defer { noteEnd(of: entry, held) }
    return isElsewhere
  }

  /// Ends the item of an entry, which has failed on any machine.
  package func fail(_ entry: Int64, _ message: String) throws(JournalError) {
    guard let held = state.update(waking: .none, { $0.held[entry] }) else { return }
    try end(held.item, held.fence, message)
    noteEnd(of: entry, held)
  }

  private func noteEnd(of entry: Int64, _ held: HeldItem) {
    state.update(waking: .none) { state in
      state.open[held.item] = nil
      state.held[entry]?.hasEnded = true
      state.ended.append(entry)
    }
  }

  /// `failure` nil: the item waits for the machine that has added it.
  private func end(_ item: Int64, _ fence: Int64, _ failure: String?) throws(JournalError) {
    _ = try queue.query(
      """
      UPDATE fullbore.queue_items SET state = CASE WHEN $3::text IS NULL THEN 0 ELSE 3 END,
        bound = CASE WHEN $3::text IS NULL THEN machine ELSE bound END, error = $3::text, changed = clock_timestamp()
      WHERE id = $1::bigint AND fence = $2::bigint AND state = 1
      """, ["\(item)", "\(fence)", failure])
  }
}
