import BlobHTTP
import BlobPostgres
import BlobServer
import BlobUpload
import Blobs

/// Keeps the records of uploads in a PostgreSQL database that several servers share.
///
/// A row of `uploads` has the record, the fence and the holder of the claim. A row without a record is that of an upload that
/// was not saved, or is being deleted. Each statement may run twice, because the answer to the first may be lost. Only the
/// clock of the database is used.
package final class PostgresRecords: RecordKeeping {
  private let pool: PostgresPool
  /// Uploads of servers that store elsewhere are in the same tables.
  private let fleet: FleetPlace
  private let place: String
  private let notices = DatabaseNotices()
  private let holdings: PostgresClaims
  package var claims: (any UploadClaiming)? { holdings }
  private struct Count {
    var value = 0
    /// nil: this server has changed it since.
    var time: ContinuousClock.Instant?
  }
  private let count = Monitor(Count())

  /// `url`: as libpq takes it. `destination`: the bucket that has the bytes of the uploads. Creates or changes the
  /// tables, and the object in the bucket that names the place. Blocks.
  package init(
    _ url: String, for destination: UploadDestination, over transport: any Transport
  ) throws(ServerError) {
    pool = PostgresPool(url, most: 8)
    do throws(PostgresError) {
      try PostgresTables.servers.prepare(pool)
    } catch {
      throw ServerError("the database for the state: \(error.message)")
    }
    fleet = try FleetPlace(S3Bucket(destination, over: transport), pool)
    place = fleet.name
    holdings = PostgresClaims(pool, place, notices)
    try holdings.start()
  }

  package func close() { holdings.close() }

  package var problem: String? { notices.problem }
  package func takeNotices() -> [String] { notices.take() }
  package func tidy() { if let line = fleet.lookAfter() { notices.note(line) } }

  /// `load` gives the times by this clock, from the ages that the database tells.
  package var now: Int64 { wallClock() }

  package func fence(of id: UploadID) -> Int64? { holdings.fence(of: id) }

  package func drop(_ id: UploadID, under fence: Int64?) { holdings.drop(id, under: fence) }

  private func query(_ statement: String, _ values: [String?]) throws(ServerError) -> [[String?]] {
    do throws(PostgresError) { return try pool.query(statement, values) } catch { throw notices.error(of: error) }
  }

  // MARK: Reading

  package func load(_ id: UploadID) throws(ServerError) -> KeptRecord? {
    let rows = try query(
      """
      SELECT record, is_finished, (extract(epoch FROM clock_timestamp() - changed) * 1e9)::bigint
      FROM fullbore.uploads WHERE id = $1 AND place = $2 AND record IS NOT NULL
      """, [id.description, place])
    guard let row = rows.first, let text = row[0], let record = UploadRecord(id, Array(text.utf8)) else { return nil }
    let age = row[2].flatMap { Int64($0) } ?? 0
    return KeptRecord(record: record, isFinished: row[1] == "t", changed: wallClock().addingClamped(-max(0, age)))
  }

  package func notes(of id: UploadID) throws(ServerError) -> [String] {
    try query("SELECT line FROM fullbore.notes WHERE id = $1 ORDER BY number", [id.description]).compactMap { $0[0] }
  }

  package func ids(_ kinds: [RecordKind]) throws(ServerError) -> [Set<UploadID>] {
    try kinds.map { kind throws(ServerError) in try ids(of: kind) }
  }

  private func ids(of kind: RecordKind) throws(ServerError) -> Set<UploadID> {
    let rows: [[String?]]
    switch kind {
    case .unsaved:
      // They are claimed at once. Those of this server stay for a day, because their clients may still be sending.
      rows = try query(
        """
        UPDATE fullbore.uploads SET fence = fence + 1, node = $2, changed = clock_timestamp()
        WHERE id IN (
          SELECT id FROM fullbore.uploads u WHERE place = $1 AND NOT is_finished AND record IS NULL
            AND (\(PostgresClaims.isFree) OR changed < clock_timestamp() - interval '1 day')
          LIMIT 1000 FOR UPDATE SKIP LOCKED)
        RETURNING id
        """, [place, holdings.node])
    case .unclaimed:
      rows = try query(
        """
        SELECT id FROM fullbore.uploads u
        WHERE place = $1 AND NOT is_finished AND record IS NOT NULL AND (node = $2 OR \(PostgresClaims.isFree))
        LIMIT 1000
        """, [place, holdings.node])
    case .expired(let expiry):
      rows = try query(
        """
        SELECT id FROM fullbore.uploads u
        WHERE place = $1 AND record IS NOT NULL
          AND (changed <= clock_timestamp() - $2::float8 / 1000 * interval '1 microsecond'
            OR NOT is_finished AND changed <= clock_timestamp() - $3::float8 / 1000 * interval '1 microsecond'
              AND NOT EXISTS (SELECT 1 FROM fullbore.notes n WHERE n.id = u.id))
        ORDER BY changed LIMIT 1000
        """, [place, "\(expiry)", "\(min(expiry, UploadRecord.emptyLifetime))"])
    }
    return Set(rows.compactMap { $0[0].flatMap { UploadID($0) } })
  }

  package var unfinished: Int? {
    let now = ContinuousClock.now
    if let known = count.update(waking: .none, { $0.time.map { now - $0 < .seconds(1) } == true ? $0.value : nil }) {
      return known
    }
    let rows = try? query(
      "SELECT count(*) FROM fullbore.uploads WHERE place = $1 AND NOT is_finished AND record IS NOT NULL", [place])
    let found = rows?.first?[0].flatMap { Int($0) }
    return count.update { count in
      // If the database cannot be reached, the last number is told.
      if let found { count = Count(value: found, time: now) }
      return count.value
    }
  }

  private func noteChange() { count.update { $0.time = nil } }

  // MARK: Changing

  package func save(_ record: UploadRecord, under fence: Int64?) throws(ServerError) -> Int64 {
    try record.checkSize()
    defer { noteChange() }
    guard let fence else {
      let rows = try query(
        """
        INSERT INTO fullbore.uploads AS u (id, place, record, node) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET record = EXCLUDED.record, changed = clock_timestamp()
        WHERE u.fence = 1 AND NOT u.is_finished RETURNING fence
        """, [record.id.description, place, record.text, holdings.node])
      return try holdings.began(record.id, rows)
    }
    let rows = try query(
      """
      UPDATE fullbore.uploads SET record = $3, changed = clock_timestamp()
      WHERE id = $1 AND fence = $2::bigint AND NOT is_finished RETURNING fence
      """, [record.id.description, "\(fence)", record.text])
    return try holdings.confirmed(record.id, rows, under: fence)
  }

  package func note(
    _ line: String, _ number: Int, for id: UploadID, under given: Int64?, fulfilling intent: UploadID?
  ) throws(ServerError) -> Int64 {
    let fence: Int64
    if let given {
      fence = given
    } else {
      let rows = try query(
        """
        INSERT INTO fullbore.uploads AS u (id, place, node) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET changed = clock_timestamp() WHERE u.fence = 1 RETURNING fence
        """, [id.description, place, holdings.node])
      fence = try holdings.began(id, rows)
    }
    // The rows are locked first, so a claim of another server comes before or after all changes. If the statement runs
    // again, the intent is gone and the note is there.
    let rows = try query(
      """
      WITH i AS (SELECT 1 FROM fullbore.intents WHERE id = $5 AND NOT is_taken FOR UPDATE),
      u AS (
        UPDATE fullbore.uploads SET changed = clock_timestamp()
        WHERE id = $1 AND fence = $2::bigint AND NOT is_finished
          AND ($5::text IS NULL OR EXISTS (SELECT 1 FROM i)
            OR EXISTS (SELECT 1 FROM fullbore.notes WHERE id = $1 AND number = $3::integer AND line = $4))
        RETURNING id),
      d AS (DELETE FROM fullbore.intents USING u WHERE intents.id = $5)
      INSERT INTO fullbore.notes SELECT id, $3::integer, $4 FROM u
      ON CONFLICT (id, number) DO UPDATE SET line = EXCLUDED.line RETURNING number
      """, [id.description, "\(fence)", "\(number)", line, intent?.description])
    return try holdings.confirmed(id, rows, under: fence)
  }

  // MARK: Intents

  package func keep(_ intent: UploadID, of object: String) throws(ServerError) {
    _ = try query(
      "INSERT INTO fullbore.intents (id, place, object, node) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
      [intent.description, place, object, holdings.node])
  }

  package func takeIntents(except current: Set<UploadID>) throws(ServerError) -> [PartsIntent] {
    let rows = try query(
      """
      UPDATE fullbore.intents SET node = $2, is_taken = true
      WHERE id IN (
        SELECT id FROM fullbore.intents u
        WHERE place = $1 AND (
          node = $2 AND (is_taken OR kept < clock_timestamp() - $4::float8 / 1000 * interval '1 microsecond'
            AND NOT id = ANY ($3::text[]))
          OR node <> $2 AND \(PostgresClaims.isFree))
        ORDER BY kept LIMIT 1000 FOR UPDATE SKIP LOCKED)
      RETURNING id, object, (extract(epoch FROM clock_timestamp() - kept) * 1e9)::bigint
      """,
      [
        place, holdings.node, "{\(current.map(\.description).joined(separator: ","))}", "\(PartsIntent.grace)",
      ])
    return rows.compactMap { row in
      guard let id = row[0].flatMap({ UploadID($0) }), let object = row[1], let age = row[2].flatMap({ Int64($0) })
      else { return nil }
      return PartsIntent(id: id, object: object, age: age)
    }
  }

  package func objectsOfOthers() throws(ServerError) -> Set<String> {
    let rows = try query(
      "SELECT DISTINCT object FROM fullbore.intents WHERE place = $1 AND NOT is_taken AND node <> $2",
      [place, holdings.node])
    return Set(rows.compactMap { $0[0] })
  }

  package func hasNote(with text: String) throws(ServerError) -> Bool {
    try !query("SELECT 1 FROM fullbore.notes WHERE position($1 IN line) > 0 LIMIT 1", [text]).isEmpty
  }

  package func forget(_ intents: [UploadID]) {
    if intents.isEmpty { return }
    _ = try? query(
      "DELETE FROM fullbore.intents WHERE id = ANY ($1::text[])",
      ["{\(intents.map(\.description).joined(separator: ","))}"])
  }

  // MARK: Ends

  package func check(_ id: UploadID, isSaved: Bool, under fence: Int64?) throws(ServerError) {
    let rows = try query(
      """
      SELECT 1 FROM fullbore.uploads
      WHERE id = $1 AND fence = $2::bigint AND NOT is_finished AND (record IS NOT NULL) = $3::boolean
      """, [id.description, fence.map { "\($0)" }, "\(isSaved)"])
    _ = try holdings.confirmed(id, rows, under: fence ?? 0)
  }

  package func finish(_ record: UploadRecord, under fence: Int64?) throws(ServerError) {
    defer { noteChange() }
    let rows = try query(
      """
      WITH u AS (
        UPDATE fullbore.uploads SET record = $3, is_finished = true, node = NULL, changed = clock_timestamp()
        WHERE id = $1 AND fence = $2::bigint AND record IS NOT NULL RETURNING id),
      d AS (DELETE FROM fullbore.notes USING u WHERE notes.id = u.id)
      SELECT id FROM u
      """, [record.id.description, fence.map { "\($0)" }, record.text])
    _ = try holdings.confirmed(record.id, rows, under: fence ?? 0)
    holdings.drop(record.id, under: fence)
  }

  package func deleteRecord(_ id: UploadID, under fence: Int64?) -> Bool {
    defer { noteChange() }
    // If the database cannot be reached, the upload stays until it expires.
    let rows = try? query(
      """
      WITH u AS (
        UPDATE fullbore.uploads SET record = NULL, is_finished = false, changed = clock_timestamp()
        WHERE id = $1 AND place = $3 AND (is_finished OR record IS NULL OR fence = $2::bigint) RETURNING id)
      SELECT EXISTS (SELECT 1 FROM u) OR NOT EXISTS (SELECT 1 FROM fullbore.uploads WHERE id = $1)
      """, [id.description, fence.map { "\($0)" }, place])
    return rows?.first?[0] == "t"
  }

  package func delete(_ id: UploadID) {
    // If the database cannot be reached, the row stays, and a later round of expiry finds it as an upload without a record.
    _ = try? query("DELETE FROM fullbore.uploads WHERE id = $1 AND record IS NULL", [id.description])
    holdings.drop(id, under: nil)
  }
}
