import BlobCrypto
import BlobPostgres
import BlobUpload
import Blobs

/// A queue of uploads in a PostgreSQL database, which processes on many machines share.
///
/// All methods block, and wait while the database cannot be reached, until `stop` is called. Statements have the same effect
/// if they run twice. Only the clock of the database is used.
package final class SharedQueue: Sendable {
  private struct State {
    var isStopping = false
    /// When the database was first found to be unreachable; nil: it was reached last.
    var lost: ContinuousClock.Instant?
    var hasTold = false
  }
  let pool: PostgresPool
  /// The name of this machine, by which items are bound to it.
  package let machine: String
  private let notice: @Sendable (String) -> Void
  private let state = Monitor(State())

  /// Creates the tables, or changes them to the form of this version. Throws within seconds if the database cannot be reached.
  /// - `url`: as libpq takes it. It may have a password, and appears in no message.
  /// - `notice`: is told when the database is lost and when it is back, on any thread.
  package init(
    _ url: String, on machine: String, notice: @escaping @Sendable (String) -> Void = { _ in }
  ) throws(JournalError) {
    (self.machine, self.notice) = (machine, notice)
    pool = PostgresPool(url, most: 6)
    do throws(PostgresError) { try PostgresTables.queue.prepare(pool) } catch { throw JournalError(error) }
  }

  /// From now on, calls throw if the database is not reached within some seconds.
  package func stop() { state.update { $0.isStopping = true } }

  /// Runs `work` with a connection, again and again while the database cannot be reached. `isOver`: ends the waiting.
  func patiently<Result>(
    _ isOver: () -> Bool = { false }, _ work: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(JournalError) -> Result {
    let began = ContinuousClock.now
    var pause = Duration.milliseconds(10)
    while true {
      do throws(PostgresError) {
        let result = try pool.once(work)
        noteReached()
        return result
      } catch {
        if !error.isTemporary || isOver() { throw JournalError(error) }
        let isStopping = state.update(waking: .none) { $0.isStopping }
        if isStopping, ContinuousClock.now - began > .seconds(5) { throw JournalError(error) }
        noteLost(error)
        state.wait(atMost: pause) { $0.isStopping && !isStopping ? () : nil }
        pause = min(pause * 2, .milliseconds(500))
      }
    }
  }

  func query(_ statement: String, _ values: [String?] = []) throws(JournalError) -> [[String?]] {
    try patiently { (connection) throws(PostgresError) in try connection.query(statement, values) }
  }

  private func noteReached() {
    let isNews = state.update(waking: .none) { state in
      defer { (state.lost, state.hasTold) = (nil, false) }
      return state.hasTold
    }
    if isNews { notice("the database of the queue is back: it goes on") }
  }

  private func noteLost(_ error: PostgresError) {
    let isNews = state.update(waking: .none) { state in
      let lost = state.lost ?? .now
      state.lost = lost
      // A database that restarts is back by then.
      if state.hasTold || ContinuousClock.now - lost < .seconds(2) { return false }
      state.hasTold = true
      return true
    }
    if isNews { notice("the database of the queue does not answer (\(error.message)): waiting until it does") }
  }

  // MARK: Destinations

  /// The number of a destination. Equal destinations have the same one on all machines.
  package func destinationID(_ destination: JournalDestination) throws(JournalError) -> Int64 {
    let text = JSONColumn.encode(destination)
    let find = "SELECT id FROM fullbore.queue_destinations WHERE md5(json) = md5($1) AND json = $1"
    if let id = number(try query(find, [text])) { return id }
    _ = try query("INSERT INTO fullbore.queue_destinations (json) VALUES ($1) ON CONFLICT DO NOTHING", [text])
    guard let id = number(try query(find, [text])) else { throw JournalError("the queue has lost a destination") }
    return id
  }

  /// All destinations by their numbers. Those of a newer version of this program are left out.
  package func destinations() throws(JournalError) -> [Int64: JournalDestination] {
    var found: [Int64: JournalDestination] = [:]
    for row in try query("SELECT id, json FROM fullbore.queue_destinations") {
      guard let id = row[0].flatMap({ Int64($0) }), let text = row[1] else { continue }
      found[id] = JSONColumn.decode(text)
    }
    return found
  }
}

/// The first value of the first row.
func number(_ rows: [[String?]]) -> Int64? { rows.first?.first.flatMap { $0 }.flatMap { Int64($0) } }

/// A text that PostgreSQL reads as an array of numbers.
func array(_ numbers: some Sequence<Int64>) -> String { "{\(numbers.map(String.init).joined(separator: ","))}" }

extension PostgresConnection {
  /// Runs `work` in a transaction.
  func transaction<Result>(_ work: () throws(PostgresError) -> Result) throws(PostgresError) -> Result {
    try query("BEGIN")
    do {
      let result = try work()
      try query("COMMIT")
      return result
    } catch {
      // A connection that is lost has no transaction any more.
      if isUsable { _ = try? query("ROLLBACK") }
      throw error
    }
  }
}

extension JournalError {
  init(_ error: PostgresError) { self.init("the queue's database: \(error.message)", cause: error) }
}
