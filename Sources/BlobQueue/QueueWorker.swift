import BlobCrypto
import BlobPostgres
import BlobUpload
import Blobs

/// One process that sends items of a shared queue, with its claims.
///
/// A claim is valid as long as the lease of its worker, which a thread renews each second. A worker whose lease has run out
/// loses all its claims as soon as another one notices: then `isLost` is true, `store` throws, and nothing of this worker
/// changes the queue any more. All methods block.
package final class QueueWorker: Sendable {
  struct State {
    /// By the entries of the process's journal.
    var held: [Int64: HeldItem] = [:]
    /// The items that are claimed and have not ended.
    var open: [Int64: Int64] = [:]
    /// The entries that have ended, the oldest first.
    var ended: [Int64] = []
    /// The last claimed item, by destination and machine: rows before it were claimed already, and are passed over.
    var cursors: [String: Int64] = [:]
    /// A claim has failed, and may have had an effect.
    var mayHaveMore = false
    var seq: Int64 = 0
    var isLost = false
    var isClosed = false
    /// When this worker began to renew its lease without a pause.
    var leased: ContinuousClock.Instant?

    var openBytes: Int64 { open.values.reduce(0) { $0.addingClamped($1) } }
  }

  /// An item that this worker has claimed.
  struct HeldItem {
    var item: Int64
    var fence: Int64
    var machine: String
    /// Whether the database may have parts of it.
    var hasParts: Bool
    var hasEnded = false
  }
  package let queue: SharedQueue
  /// Is in the rows of its items.
  package let name: String
  let state = Monitor(State())
  private let ended = Monitor(false)

  static let lease = Duration.seconds(3)
  /// A worker has at most `mostItems` that are claimed and not ended, and no more than `fewItems` of more than `mostBytes`.
  private static let (mostItems, fewItems, mostBytes) = (1024, 8, Int64(1) << 30)

  /// Registers the worker, and begins to renew its lease.
  package init(_ queue: SharedQueue, pid: Int32) throws(JournalError) {
    self.queue = queue
    name = Digest.hex((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    _ = try queue.query(
      """
      INSERT INTO fullbore.queue_workers VALUES ($1, $2, $3::integer, clock_timestamp() + $4::integer * interval '1 second')
      ON CONFLICT DO NOTHING
      """, [name, queue.machine, "\(pid)", Self.seconds])
    SystemThread.start("fullbore-lease") { [self] in keepLease() }
  }

  private static var seconds: String { "\(lease.components.seconds)" }

  /// Another process has taken over what this one had claimed.
  package var isLost: Bool { state.update(waking: .none) { $0.isLost } }

  /// Whether there is room for more claims.
  package var mayClaim: Bool {
    state.update(waking: .none) { state in
      state.open.count < Self.fewItems || state.open.count < Self.mostItems && state.openBytes < Self.mostBytes
    }
  }

  // MARK: The lease

  private func keepLease() {
    var connection: PostgresConnection?
    while !state.update(waking: .none, { $0.isClosed || $0.isLost }) {
      var pause = Duration.milliseconds(300)
      do throws(PostgresError) {
        let current = if let connection { connection } else { try queue.pool.connect() }
        connection = current
        try renew(current)
        pause = .seconds(1)
      } catch {
        connection = nil
        state.update { $0.leased = nil }
      }
      state.wait(atMost: pause) { $0.isClosed ? () : nil }
    }
    connection = nil
    ended.update { $0 = true }
  }

  private func renew(_ connection: PostgresConnection) throws(PostgresError) {
    let start = ContinuousClock.now
    let renewed = try connection.query(
      """
      UPDATE fullbore.queue_workers SET lease = clock_timestamp() + $2::integer * interval '1 second'
      WHERE worker = $1 RETURNING 1
      """, [name, Self.seconds], within: .seconds(2))
    if renewed.isEmpty {
      state.update { $0.isLost = true }
      return
    }
    let since = state.update { state in
      let since = state.leased ?? start
      state.leased = since
      return since
    }
    // When the database has been away, the others need some time to renew theirs.
    if start - since < Self.lease { return }
    let dead = try connection.query(
      "SELECT worker FROM fullbore.queue_workers WHERE lease < clock_timestamp()", within: .seconds(2))
    for worker in dead.compactMap({ $0[0] }) where worker != name {
      try release(worker, connection, onlyIfDead: true)
      state.update { $0.cursors = [:] }
    }
  }

  /// Lets others have the items of a worker, which is forgotten.
  private func release(
    _ worker: String, _ connection: PostgresConnection, onlyIfDead: Bool
  ) throws(PostgresError) {
    let condition = onlyIfDead ? " AND lease < clock_timestamp()" : ""
    try connection.transaction { () throws(PostgresError) in
      // A claim locks the row of its worker, so that it is either seen by the second statement, or finds no worker.
      let gone = try connection.query(
        """
        DELETE FROM fullbore.queue_workers WHERE worker IN (
          SELECT worker FROM fullbore.queue_workers WHERE worker = $1\(condition) FOR UPDATE) RETURNING 1
        """, [worker])
      if gone.isEmpty, onlyIfDead { return }
      try connection.query(
        """
        UPDATE fullbore.queue_items SET state = 0, fence = fence + 1, changed = clock_timestamp()
        WHERE state = 1 AND worker = $1
        """, [worker])
    }
  }

  /// Releases all claims. Blocks for some seconds at most; what is not released then, others take over.
  package func close() {
    state.update { $0.isClosed = true }
    ended.wait { $0 ? () : nil }
    if isLost { return }
    _ = try? queue.pool.once { (connection) throws(PostgresError) in
      try release(name, connection, onlyIfDead: false)
    }
  }
}
