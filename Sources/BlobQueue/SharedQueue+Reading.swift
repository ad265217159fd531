import BlobUpload
import Blobs

/// An item of the queue that has failed.
package struct FailedItem: Sendable {
  package let id: Int64
  package let source: BytePath
  package let path: BytePath
  package let message: String
  /// The process that has sent it last.
  package let worker: String
}

/// Uploads of one destination in one state.
package struct QueueSum: Sendable {
  package let destination: Int64
  /// 0 waiting, 1 claimed, 2 done, 3 failed, 4 refused.
  package let state: Int
  package let count: Int64
  package let bytes: Int64
  package let acknowledged: Int64
}

/// A push that has not added all its files.
package struct UnlistedPush: Sendable {
  package let destination: Int64
  /// As the user gave them, for messages.
  package let sources: String
  package let machine: String
  /// Its process is alive.
  package let isRunning: Bool
}

extension SharedQueue {
  /// Sums of all items. Reads a few rows, however many items there are.
  package func sums() throws(JournalError) -> [QueueSum] {
    let rows = try query(
      """
      SELECT destination, state, sum(count)::bigint, least(sum(bytes), 9223372036854775807)::bigint,
        least(sum(acknowledged), 9223372036854775807)::bigint
      FROM fullbore.queue_totals GROUP BY destination, state HAVING sum(count) > 0 ORDER BY destination, state
      """)
    return rows.map { row in
      let numbers = row.map { $0.flatMap { Int64($0) } ?? 0 }
      return QueueSum(
        destination: numbers[0], state: Int(numbers[1]), count: numbers[2], bytes: numbers[3],
        acknowledged: numbers[4])
    }
  }

  /// The first failed items of a destination with a higher id.
  package func failures(at destination: Int64, after id: Int64 = 0, limit: Int) throws(JournalError) -> [FailedItem] {
    try failures("destination = $1::bigint AND state >= 3", destination, id, limit)
  }

  /// The same of a push.
  package func failures(of push: Int64, after id: Int64 = 0, limit: Int) throws(JournalError) -> [FailedItem] {
    try failures("push = $1::bigint AND state <> 2 AND state >= 3", push, id, limit)
  }

  /// The failed ones among these items.
  package func failures(among ids: [Int64]) throws(JournalError) -> [FailedItem] {
    try failed(
      try query(
        "SELECT id, record, error, worker FROM fullbore.queue_items WHERE id = ANY($1::bigint[]) AND state >= 3",
        [array(ids)]))
  }

  private func failures(
    _ condition: String, _ number: Int64, _ id: Int64, _ limit: Int
  ) throws(JournalError) -> [FailedItem] {
    try failed(
      try query(
        """
        SELECT id, record, error, worker FROM fullbore.queue_items
        WHERE \(condition) AND id > $2::bigint ORDER BY id LIMIT $3::integer
        """, ["\(number)", "\(id)", "\(limit)"]))
  }

  private func failed(_ rows: [[String?]]) throws(JournalError) -> [FailedItem] {
    rows.compactMap { row in
      guard let id = row[0].flatMap({ Int64($0) }), let text = row[1],
        let record: ResumableUpload = JSONColumn.decode(text), let intent = record.intent
      else { return nil }
      return FailedItem(
        id: id, source: intent.source, path: intent.path, message: row[2] ?? "it has failed", worker: row[3] ?? "")
    }
  }

  /// Pushes that are listing their files, or have ended before all were added.
  package func unlisted() throws(JournalError) -> [UnlistedPush] {
    let rows = try query(
      """
      SELECT destination, sources, machine, EXISTS (
        SELECT 1 FROM fullbore.queue_workers w WHERE w.worker = p.worker AND lease > clock_timestamp())
      FROM fullbore.queue_pushes p WHERE NOT is_listed ORDER BY id
      """)
    return rows.map { row in
      UnlistedPush(
        destination: row[0].flatMap { Int64($0) } ?? 0, sources: row[1] ?? "", machine: row[2] ?? "",
        isRunning: row[3] == "t")
    }
  }

  /// How many items only one machine may send, by machine, for those that wait. Reads the waiting items that are bound.
  package func bound() throws(JournalError) -> [(machine: String, count: Int64)] {
    try query(
      """
      SELECT bound, count(*) FROM fullbore.queue_destinations d
      JOIN fullbore.queue_items i ON i.destination = d.id AND i.state = 0 AND i.bound > '' GROUP BY bound ORDER BY bound
      """
    ).map { ($0[0] ?? "", $0[1].flatMap { Int64($0) } ?? 0) }
  }

  /// Whether an item of the push waits or is being sent. `others`: further items; those that have ended are removed.
  package func isUnfinished(_ push: Int64, _ others: inout [Int64]) throws(JournalError) -> Bool {
    let own = try query(
      "SELECT 1 FROM fullbore.queue_items WHERE push = $1::bigint AND state IN (0, 1) LIMIT 1", ["\(push)"])
    if !own.isEmpty { return true }
    while !others.isEmpty {
      let asked = others.suffix(1000)
      let open = try query(
        "SELECT id FROM fullbore.queue_items WHERE id = ANY($1::bigint[]) AND state IN (0, 1)", [array(asked)])
      if !open.isEmpty { return true }
      others.removeLast(asked.count)
    }
    return false
  }

  /// Whether there is something at a destination that this machine may send, now or if another process dies, or that a push is
  /// still listing.
  package func hasWork(at destination: Int64) throws(JournalError) -> Bool {
    let rows = try query(
      """
      SELECT EXISTS (SELECT 1 FROM fullbore.queue_items WHERE state = 0 AND destination = $1::bigint AND bound = '')
        OR EXISTS (SELECT 1 FROM fullbore.queue_items WHERE state = 0 AND destination = $1::bigint AND bound = $2)
        OR (SELECT coalesce(sum(count), 0) FROM fullbore.queue_totals WHERE destination = $1::bigint AND state = 1) > 0
        OR EXISTS (
          SELECT 1 FROM fullbore.queue_pushes p JOIN fullbore.queue_workers w USING (worker)
          WHERE p.destination = $1::bigint AND NOT is_listed AND lease > clock_timestamp())
      """, ["\(destination)", machine])
    return rows.first?[0] == "t"
  }

  /// Lets failed items of a destination wait again, at most those up to `last`. Returns how many there were.
  package func retryFailed(at destination: Int64) throws(JournalError) -> Int {
    var (last, count): (Int64, Int) = (0, 0)
    while true {
      // In pages, so that no statement holds many rows.
      let rows = try query(
        """
        UPDATE fullbore.queue_items i SET state = 0, fence = fence + 1, changed = clock_timestamp()
        WHERE state = 3 AND id = ANY(ARRAY(
          SELECT id FROM fullbore.queue_items WHERE destination = $1::bigint AND state >= 3 AND state = 3 AND id > $2::bigint
          ORDER BY id LIMIT 1000)) RETURNING id
        """, ["\(destination)", "\(last)"])
      if rows.isEmpty { return count }
      count += rows.count
      last = rows.compactMap { $0[0].flatMap { Int64($0) } }.max() ?? .max
    }
  }
}
