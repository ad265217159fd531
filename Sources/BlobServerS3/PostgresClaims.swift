import BlobCrypto
import BlobPostgres
import BlobServer
import Blobs

/// The claims to uploads that this server, a node, shares with others.
///
/// A claim is valid as long as the lease of its node, which the node renews each second. Whoever wants the upload of a living
/// node sends a notification to it, and tries again until the node has let go of the upload.
final class PostgresClaims: UploadClaiming {
  struct State {
    /// The fences of the claims that this node has got, and not lost as far as it knows.
    var held: [UploadID: Int64] = [:]
    /// The uploads that one thread is getting or releasing just now.
    var changing: Set<UploadID> = []
    /// When the last renewal of the lease began that has succeeded.
    var renewed: ContinuousClock.Instant?
    var isClosed = false
    var letGo: @Sendable (UploadID) -> Bool = { _ in true }

    /// Whether no other node can have taken what this one holds, unless this one has let go of it.
    var isLeased: Bool { renewed.map { ContinuousClock.now - $0 < PostgresClaims.lease } ?? false }
  }
  private let pool: PostgresPool
  private let place: String
  let node = UploadID.random().description
  private let state = Monitor(State())
  private let notices: DatabaseNotices
  /// Letting go waits for a request that is sending to the bucket.
  private let threads = BlockingPool("fullbore-claims", threads: 8, patience: .seconds(10))
  private let ended = Monitor(true)

  static let lease = Duration.seconds(3)
  private static let renewal = Duration.seconds(1)
  /// A condition for rows of `uploads u`: no living node holds the claim.
  static let isFree = """
    (u.node IS NULL OR NOT EXISTS (
      SELECT 1 FROM fullbore.nodes n WHERE n.node = u.node AND n.lease > clock_timestamp()))
    """

  init(_ pool: PostgresPool, _ place: String, _ notices: DatabaseNotices) {
    (self.pool, self.place, self.notices) = (pool, place, notices)
  }

  func fence(of id: UploadID) -> Int64? { state.update(waking: .none) { $0.held[id] } }

  func onRequest(_ letGo: @escaping @Sendable (UploadID) -> Bool) { state.update { $0.letGo = letGo } }

  /// Forgets a claim. `fence` nil: whichever it is.
  func drop(_ id: UploadID, under fence: Int64?) {
    state.update { state in if fence == nil || state.held[id] == fence { state.held[id] = nil } }
  }

  /// Notes the claim to an upload that this node has begun. `rows`: empty if another node has got it meanwhile.
  func began(_ id: UploadID, _ rows: [[String?]]) throws(ServerError) -> Int64 {
    if rows.isEmpty { throw .claimIsLost }
    state.update { $0.held[id] = 1 }
    return 1
  }

  /// Throws if a change has met no row: another node has got the claim.
  func confirmed(_ id: UploadID, _ rows: [[String?]], under fence: Int64) throws(ServerError) -> Int64 {
    if !rows.isEmpty { return fence }
    drop(id, under: fence)
    throw .claimIsLost
  }

  // MARK: Getting claims

  func claim(_ id: UploadID, waits: Bool) throws(ServerError) -> ClaimResult {
    let isHeld = state.wait(atMost: .seconds(10)) { state -> Bool? in
      if state.changing.contains(id) { return nil }
      if state.held[id] != nil, state.isLeased { return true }
      state.changing.insert(id)
      return false
    }
    guard let isHeld else { throw Self.isBusy }
    if isHeld { return .held }
    defer { state.update { _ = $0.changing.remove(id) } }
    do throws(PostgresError) {
      if !state.update(waking: .none, { $0.isLeased }) { try renew() }
      return try claimNow(id, waits: waits)
    } catch {
      throw notices.error(of: error)
    }
  }

  private static let isBusy = {
    var error = ServerError(503, "another server is busy with the upload: try again")
    error.headers["Retry-After"] = "1"
    return error
  }()

  private func claimNow(_ id: UploadID, waits: Bool) throws(PostgresError) -> ClaimResult {
    let deadline = ContinuousClock.now + .seconds(8)
    var (pause, asked): (Duration, ContinuousClock.Instant?) = (.milliseconds(2), nil)
    let values = [id.description, node, place, StoredBytes.Note(isTakenOver: true).line, "\(waits)"]
    while true {
      // A node that has not released the claim may still be sending bytes, so a note is added for what it may have sent. A
      // client's request puts off the expiry, although no byte may come of it.
      let rows = try pool.query(
        """
        WITH c AS (
          UPDATE fullbore.uploads u
          SET fence = fence + 1, previous = node, node = $2,
            changed = CASE WHEN $5::boolean THEN clock_timestamp() ELSE changed END
          WHERE id = $1 AND place = $3 AND NOT is_finished AND record IS NOT NULL AND (node = $2 OR \(Self.isFree))
          RETURNING fence, previous),
        n AS (
          INSERT INTO fullbore.notes
          SELECT $1, (SELECT coalesce(max(number), 0) + 1 FROM fullbore.notes WHERE id = $1), $4
          FROM c WHERE previous IS NOT NULL)
        SELECT (SELECT fence FROM c), node FROM fullbore.uploads
        WHERE id = $1 AND place = $3 AND NOT is_finished AND record IS NOT NULL
        """, values)
      guard let row = rows.first else {
        drop(id, under: nil)
        return .unknown
      }
      if let fence = row[0].flatMap({ Int64($0) }) {
        state.update { $0.held[id] = fence }
        return .taken
      }
      if !waits { return .refused }
      let now = ContinuousClock.now
      if now > deadline { throw PostgresError("another server does not let go of the upload", isTemporary: true) }
      if let holder = row[1], asked.map({ now - $0 > .seconds(1) }) ?? true {
        try pool.query("SELECT pg_notify($1, $2)", [Self.channel(of: holder), id.description])
        asked = now
      }
      state.wait(atMost: pause) { _ in Optional<Void>.none }
      pause = min(pause * 2, .milliseconds(50))
    }
  }

  private static func channel(of node: String) -> String { "fullbore_\(node)" }

  // MARK: Holding and releasing claims

  func start() throws(ServerError) {
    do throws(PostgresError) { try renew() } catch {
      throw ServerError("the database for the state: \(error.message)")
    }
    ended.update { $0 = false }
    SystemThread.start("fullbore-lease") { [self] in
      var connection: PostgresConnection?
      while !state.update(waking: .none, { $0.isClosed }) {
        do throws(PostgresError) {
          let current = if let connection { connection } else { try listen() }
          connection = current
          try serve(current)
        } catch {
          connection = nil
          notices.noteFailure(error)
          state.wait(atMost: .milliseconds(300)) { $0.isClosed ? () : nil }
        }
      }
      connection = nil
      ended.update { $0 = true }
    }
  }

  /// Connects, and asks for the notifications of other nodes.
  private func listen() throws(PostgresError) -> PostgresConnection {
    let connection = try pool.connect()
    try connection.query("LISTEN \(Self.channel(of: node))")
    return connection
  }

  /// Renews the lease, and answers other nodes until the next renewal is due.
  private func serve(_ connection: PostgresConnection) throws(PostgresError) {
    try renew(by: connection)
    notices.noteSuccess()
    let due = ContinuousClock.now + Self.renewal
    while ContinuousClock.now < due {
      for text in try connection.notifications(within: min(.milliseconds(100), due - .now)) {
        if let id = UploadID(text) { threads.submit { [self] in release(id) } }
      }
      if state.update(waking: .none, { $0.isClosed }) { return }
    }
  }

  /// `connection` nil: any.
  private func renew(by connection: PostgresConnection? = nil) throws(PostgresError) {
    let start = ContinuousClock.now
    let statement = """
      WITH old AS (DELETE FROM fullbore.nodes WHERE lease < clock_timestamp() - interval '1 hour' AND node <> $1)
      INSERT INTO fullbore.nodes VALUES ($1, clock_timestamp() + $2::integer * interval '1 second')
      ON CONFLICT (node) DO UPDATE SET lease = EXCLUDED.lease
      """
    let values = [node, "\(Self.lease.components.seconds)"]
    if let connection {
      try connection.query(statement, values, within: .seconds(2))
    } else {
      try pool.query(statement, values)
    }
    state.update { state in
      // While the lease had run out, others may have taken the claims. They are got again when they are needed.
      if let renewed = state.renewed, start - renewed >= Self.lease { state.held = [:] }
      state.renewed = max(state.renewed ?? start, start)
    }
  }

  /// Lets another node have the upload.
  private func release(_ id: UploadID) {
    let letGo = state.update { state -> (@Sendable (UploadID) -> Bool)? in
      state.changing.insert(id).inserted ? state.letGo : nil
    }
    // This node is just getting the claim, and will be asked again.
    guard let letGo else { return }
    defer { state.update { _ = $0.changing.remove(id) } }
    let fence = fence(of: id)
    if !letGo(id) { return }
    drop(id, under: fence)
    // Without a claim it is not known what this node has sent, and the next one must know that.
    _ = try? pool.query(
      """
      UPDATE fullbore.uploads SET node = $4 WHERE id = $1 AND node = $2 AND ($3::bigint IS NULL OR fence = $3::bigint)
      """, [id.description, node, fence.map { "\($0)" }, fence == nil ? "" : nil])
  }

  /// Releases all claims. Blocks for some seconds at most.
  func close() {
    state.update { $0.isClosed = true }
    ended.wait { $0 ? () : nil }
    // If the database cannot be reached, the lease runs out.
    _ = try? pool.query(
      """
      WITH n AS (DELETE FROM fullbore.nodes WHERE node = $1)
      UPDATE fullbore.uploads SET node = NULL WHERE node = $1 AND record IS NOT NULL
      """, [node], patience: .seconds(1))
  }
}
