import BlobPostgres
import BlobUpload
import Blobs

/// The worker's claims were taken over. A new worker can claim what is free.
package struct LostClaims: Error {}

extension QueueWorker: JournalMirror {
  private struct Change: Codable {
    var id: Int64
    var fence: Int64
    var seq: Int64
    var state: Int?
    var length: Int64?
    var acknowledged: Int64?
    var version: String?
    var error: String?
    var record: String?
  }

  private struct Part: Codable {
    var item: Int64
    var number: Int
    var start: Int64
    var held: Int64
    var state: String
  }

  package func isMirrored(_ id: Int64) -> Bool { state.update(waking: .none) { $0.held[id] != nil } }

  package func store(_ changes: [MirroredUpload]) throws(JournalError) {
    if isLost { throw lost }
    let (held, seq) = state.update(waking: .none) { state in
      state.seq += 1
      return (changes.map { state.held[$0.id] }, state.seq)
    }
    let known = zip(changes, held).compactMap { change, item in item.map { (change, $0) } }
    let text = JSONColumn.encode(known.map { Self.row($0, $1, seq) })
    let parts = JSONColumn.encode(known.flatMap { Self.parts($0, $1.item) })
    let cleared = known.filter { $0.hasAllParts && $1.hasParts }.map(\.1.item)
    let hasParts = parts != "[]" || !cleared.isEmpty
    let stored = try queue.patiently({ isLost }) { (connection) throws(PostgresError) -> Set<Int64> in
      if !hasParts { return try Self.store(text, connection) }
      return try connection.transaction { () throws(PostgresError) in
        let stored = try Self.store(text, connection)
        let mine = array(stored)
        try connection.query(
          "DELETE FROM fullbore.queue_parts WHERE item = ANY($1::bigint[]) AND item = ANY($2::bigint[])",
          [array(cleared), mine])
        try connection.query(
          """
          INSERT INTO fullbore.queue_parts SELECT * FROM jsonb_to_recordset($1::jsonb)
          AS x(item bigint, number integer, start bigint, held bigint, state text) WHERE item = ANY($2::bigint[])
          ON CONFLICT (item, number) DO UPDATE SET start = EXCLUDED.start, held = EXCLUDED.held, state = EXCLUDED.state
          """, [parts, mine])
        return stored
      }
    }
    // Others may add an item that has ended here anew. Everything else is as this worker has left it, or was taken over.
    if known.contains(where: { !stored.contains($1.item) && !$1.hasEnded }) {
      state.update { $0.isLost = true }
      throw lost
    }
    note(known, stored)
  }

  var lost: JournalError {
    JournalError(
      "this process had no connection to the queue's database, or was stopped, for longer than its lease: other processes go on "
        + "with its files", cause: LostClaims())
  }

  private static func row(_ change: MirroredUpload, _ held: HeldItem, _ seq: Int64) -> Change {
    var row = Change(id: held.item, fence: held.fence, seq: seq)
    guard var upload = change.upload else { return row }
    row.state =
      switch change.state {
      case .done: 2
      case .failed: 3
      case .refused: 4
      // The worker releases all that is left when it ends. Before that, the process may claim the entry again at once.
      case .intent, .open: 1
      }
    if change.state == .done { upload.sentLength = upload.length }
    (row.length, row.acknowledged, row.version) = (upload.length, upload.acknowledged, upload.validator?.version)
    // PostgreSQL's texts have no NUL.
    if [.failed, .refused].contains(change.state) { row.error = change.error?.filter { $0 != "\0" } }
    row.record = JSONColumn.encode(upload)
    return row
  }

  private static func parts(_ change: MirroredUpload, _ item: Int64) -> [Part] {
    change.parts.map {
      Part(item: item, number: $0.number, start: $0.start, held: $0.held, state: JSONColumn.encode($0.state))
    }
  }

  /// Returns the items that this worker has still claimed, or had last.
  private static func store(_ text: String, _ connection: PostgresConnection) throws(PostgresError) -> Set<Int64> {
    let rows = try connection.query(
      """
      UPDATE fullbore.queue_items i SET state = coalesce(x.state, i.state), seq = x.seq,
        length = CASE WHEN x.record IS NULL THEN i.length ELSE x.length END,
        acknowledged = coalesce(x.acknowledged, i.acknowledged),
        version = CASE WHEN x.record IS NULL THEN i.version ELSE x.version END,
        error = x.error, record = coalesce(x.record, i.record), changed = clock_timestamp()
      FROM jsonb_to_recordset($1::jsonb) AS x(id bigint, fence bigint, seq bigint, state smallint, length bigint,
        acknowledged bigint, version text, error text, record text)
      WHERE i.id = x.id AND i.fence = x.fence AND i.seq <= x.seq RETURNING i.id
      """, [text])
    return Set(rows.compactMap { $0[0].flatMap { Int64($0) } })
  }

  private func note(_ known: [(MirroredUpload, HeldItem)], _ stored: Set<Int64>) {
    state.update(waking: .none) { state in
      for (change, held) in known where stored.contains(held.item) {
        if !change.parts.isEmpty {
          state.held[change.id]?.hasParts = true
        } else if change.hasAllParts {
          state.held[change.id]?.hasParts = false
        }
        guard change.upload != nil else { continue }
        let hasEnded = change.state != .intent && change.state != .open
        if hasEnded, !held.hasEnded {
          state.open[held.item] = nil
          state.ended.append(change.id)
        } else if !hasEnded {
          state.open[held.item] = change.upload?.length ?? 0
        }
        state.held[change.id]?.hasEnded = hasEnded
      }
    }
  }
}
