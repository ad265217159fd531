import BlobCrypto
import BlobUpload
import Blobs

/// The outcome for files that a push has added.
package struct QueueAddition: Sendable {
  /// The files, by their index, that are done in this version.
  package var done: [Int] = []
  /// The files that are not added, and why.
  package var refused: [(index: Int, message: String)] = []
  /// Items that are the same files as these, and that another push has added: this one waits for them as well.
  package var others: [Int64] = []
}

extension SharedQueue {
  private struct Row: Codable {
    var n: Int
    var place: String
    var length: Int64?
    var version: String?
    var source: String
    var record: String
  }

  private struct Change: Codable {
    var n: Int
    var id: Int64
    var old: Int
    var fence: Int64
    /// The item becomes that of this file; otherwise it goes on as it is.
    var anew: Bool
  }

  /// Notes that a push begins to list its files. Listings that dead pushes of the same sources have left are replaced.
  package func beginPush(
    _ sources: String, to destination: Int64, by worker: String
  ) throws(JournalError) -> Int64 {
    let rows = try query(
      """
      WITH old AS (
        DELETE FROM fullbore.queue_pushes p WHERE destination = $1::bigint AND sources = $2 AND NOT is_listed
        AND (p.worker = $4 OR NOT EXISTS (
          SELECT 1 FROM fullbore.queue_workers w WHERE w.worker = p.worker AND lease > clock_timestamp())))
      INSERT INTO fullbore.queue_pushes (destination, sources, machine, worker)
      VALUES ($1::bigint, $2, $3, $4) RETURNING id
      """, ["\(destination)", sources, machine, worker])
    guard let id = number(rows) else { throw JournalError("the queue: it gives no number to the push") }
    return id
  }

  /// Notes that the process of a push goes on under another name.
  package func keepPush(_ push: Int64, by worker: String) throws(JournalError) {
    _ = try query(
      "UPDATE fullbore.queue_pushes SET worker = $2 WHERE id = $1::bigint AND NOT is_listed", ["\(push)", worker])
  }

  /// Every file of the push is added, or was refused.
  package func endListing(of push: Int64) throws(JournalError) {
    _ = try query("UPDATE fullbore.queue_pushes SET is_listed = true WHERE id = $1::bigint", ["\(push)"])
  }

  /// Adds files that a push has found. A batch of about 128 is a good one.
  package func add(
    _ intents: [JournalIntent], push: Int64, to destination: Int64
  ) throws(JournalError) -> QueueAddition {
    let rows = intents.enumerated().map { index, intent in
      Row(
        n: index, place: Self.place(of: intent.key), length: intent.length,
        version: intent.validator?.version, source: "\\x" + Digest.hex(intent.source.bytes),
        record: JSONColumn.encode(ResumableUpload(intent)))
    }
    let common = ["\(destination)", "\(push)", machine]
    let added = try query(
      """
      INSERT INTO fullbore.queue_items (place, destination, push, machine, length, version, source, record)
      SELECT place, $2::bigint, $3::bigint, $4, length, version, source, record FROM jsonb_to_recordset($1::jsonb)
      AS x(n integer, place uuid, length bigint, version text, source bytea, record text) ORDER BY n
      ON CONFLICT (place) DO NOTHING RETURNING replace(place::text, '-', '')
      """, [JSONColumn.encode(rows)] + common)
    var isAdded = Set(added.compactMap { $0[0] })
    // Of several files for one place, the first one is added.
    var left = rows.filter { isAdded.remove($0.place) == nil }
    var result = QueueAddition()
    for _ in 0..<100 where !left.isEmpty {
      left = try settle(left, intents, push, common, &result)
    }
    for row in left { result.refused.append((row.n, "other processes of the queue change it again and again")) }
    return result
  }

  /// A digest of the key. Files of one folder have the same first digits: they are changed together, and so they are near each
  /// other in the index.
  private static func place(of key: String) -> String {
    let folder = key.utf8[...(key.utf8.lastIndex(of: UInt8(ascii: "/")) ?? key.utf8.startIndex)]
    let digests = [Array(folder), Array(key.utf8)].map { Digest.hex(of: $0, .sha256) }
    return "\(digests[0].prefix(8))\(digests[1].prefix(24))"
  }

  /// Decides about files whose places have items. Returns those whose items have changed meanwhile.
  private func settle(
    _ rows: [Row], _ intents: [JournalIntent], _ push: Int64, _ common: [String], _ result: inout QueueAddition
  ) throws(JournalError) -> [Row] {
    let found = try query(
      """
      SELECT replace(place::text, '-', ''), id, state, fence, push, version, '\\x' || encode(source, 'hex'), bound
      FROM fullbore.queue_items WHERE place = ANY($1::uuid[])
      """, ["{\(rows.map(\.place).joined(separator: ","))}"])
    let items = Dictionary(found.map { ($0[0] ?? "", $0) }) { first, _ in first }
    var (changes, waits): ([Change], [Int: Int64]) = ([], [:])
    for row in rows {
      guard let item = items[row.place], let id = item[1].flatMap({ Int64($0) }),
        let state = item[2].flatMap({ Int($0) }), let fence = item[3].flatMap({ Int64($0) })
      else { continue }
      let isSame = item[6] == row.source
      let isOfOther = item[4] != "\(push)"
      switch state {
      case 2 where isSame && row.version != nil && item[5] == row.version: result.done.append(row.n)
      case 2: changes.append(Change(n: row.n, id: id, old: state, fence: fence, anew: true))
      case 0 where isSame && item[7] != "", 3...:
        // An item that waits for another machine may be sent from this one as well.
        changes.append(Change(n: row.n, id: id, old: state, fence: fence, anew: !isSame))
        if isSame, isOfOther { waits[row.n] = id }
      default:
        if !isSame {
          let place = intents[row.n].target
          result.refused.append((row.n, "another file of the queue goes to \(place), and is not there yet"))
        } else if isOfOther {
          result.others.append(id)
        }
      }
    }
    if changes.isEmpty { return [] }
    let known = Dictionary(rows.map { ($0.n, $0) }) { first, _ in first }
    // An older claim of an item that is begun anew must not change it any more.
    let changed = try query(
      """
      UPDATE fullbore.queue_items i SET state = 0, fence = i.fence + 1, bound = '', machine = $4, error = NULL,
        destination = $2::bigint, push = CASE WHEN x.anew OR x.old = 2 THEN $3::bigint ELSE i.push END,
        acknowledged = CASE WHEN x.anew THEN 0 ELSE i.acknowledged END,
        length = CASE WHEN x.anew THEN r.length ELSE i.length END,
        version = CASE WHEN x.anew THEN r.version ELSE i.version END,
        source = CASE WHEN x.anew THEN r.source ELSE i.source END,
        record = CASE WHEN x.anew THEN r.record ELSE i.record END, changed = clock_timestamp()
      FROM jsonb_to_recordset($1::jsonb) AS x(n integer, id bigint, old smallint, fence bigint, anew boolean),
        jsonb_to_recordset($5::jsonb)
        AS r(n integer, place uuid, length bigint, version text, source bytea, record text)
      WHERE i.id = x.id AND r.n = x.n AND i.state = x.old AND i.fence = x.fence RETURNING x.n
      """,
      [JSONColumn.encode(changes)] + common + [JSONColumn.encode(changes.compactMap { known[$0.n] })])
    let done = Set(changed.compactMap { $0[0].flatMap { Int($0) } })
    for n in done { if let id = waits[n] { result.others.append(id) } }
    return changes.filter { !done.contains($0.n) }.compactMap { known[$0.n] }
  }
}
