import Blobs

/// Connections to one database, for any thread that may block.
package final class PostgresPool: Sendable {
  private struct State {
    var idle: [PostgresConnection] = []
    var open = 0
  }
  private enum Place { case idle(PostgresConnection), new }
  private let url: String
  private let most: Int
  private let state = Monitor(State())

  /// `most`: the most connections at once. Nothing is connected yet.
  package init(_ url: String, most: Int) { (self.url, self.most) = (url, most) }

  /// A connection that belongs to no pool.
  package func connect() throws(PostgresError) -> PostgresConnection { try PostgresConnection(url) }

  /// Runs a statement as `PostgresConnection.query` does. If the database cannot be reached, the statement runs again, on
  /// another connection, until `patience` is over; so it must have the same effect if it runs twice.
  @discardableResult package func query(
    _ statement: String, _ values: [String?] = [], patience: Duration = .seconds(8)
  ) throws(PostgresError) -> [[String?]] {
    let deadline = ContinuousClock.now + patience
    var pause = Duration.milliseconds(10)
    while true {
      do throws(PostgresError) {
        return try once { (connection) throws(PostgresError) in try connection.query(statement, values) }
      } catch {
        if !error.isTemporary || ContinuousClock.now + pause > deadline { throw error }
        state.wait(atMost: pause) { _ in Optional<Void>.none }
        pause = min(pause * 2, .milliseconds(500))
      }
    }
  }

  /// Runs `work` once with a connection. Throws a temporary error if none becomes free for ten seconds.
  package func once<Result>(
    _ work: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(PostgresError) -> Result {
    let place = state.wait(atMost: .seconds(10)) { state -> Place? in
      if let connection = state.idle.popLast() { return .idle(connection) }
      if state.open == most { return nil }
      state.open += 1
      return .new
    }
    guard let place else { throw PostgresError("all connections to the database are in use", isTemporary: true) }
    let connection: PostgresConnection
    switch place {
    case .idle(let idle): connection = idle
    case .new:
      do throws(PostgresError) { connection = try connect() } catch {
        state.update { $0.open -= 1 }
        throw error
      }
    }
    defer {
      state.update(waking: .one) { state in
        if connection.isUsable { return state.idle.append(connection) }
        // The others were probably lost together with this one.
        state.open -= 1 + state.idle.count
        state.idle = []
      }
    }
    return try work(connection)
  }
}
