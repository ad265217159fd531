import BlobPostgres
import BlobServer
import Synchronization

/// Knows whether the database of the records can be used, and what the operator of the server has to be told of it.
final class DatabaseNotices: Sendable {
  private struct State {
    var hasFailed = false
    /// The texts of refused statements, each of which is told once.
    var refusals: Set<String> = []
    var lines: [String] = []
  }
  private let state = Mutex(State())
  private static let mostRefusals = 100

  /// Why nothing can be kept; nil: it can.
  var problem: String? { state.withLock { $0.hasFailed } ? "the database for the state does not answer" : nil }

  /// Call when the database has answered the regular request.
  func noteSuccess() {
    state.withLock { state in
      if state.hasFailed { state.lines.append("the database for the state answers again") }
      state.hasFailed = false
    }
  }

  /// Call when the database has not answered the regular request, or refused it.
  func noteFailure(_ error: PostgresError) {
    state.withLock { state in
      if !state.hasFailed { state.lines.append("the database for the state cannot be used: \(error.message)") }
      state.hasFailed = true
    }
  }

  /// The error for a client if the records cannot be read or changed. The operator is told the text of the database,
  /// which may have a part of the statement, and the client is not.
  func error(of error: PostgresError) -> ServerError {
    if error.isTemporary {
      var answer = ServerError(503, "the database with the uploads of this server does not answer")
      answer.headers["Retry-After"] = "2"
      return answer
    }
    state.withLock { state in
      if state.refusals.count == Self.mostRefusals { state.refusals = [] }
      if !state.refusals.insert(error.message).inserted { return }
      state.lines.append("the database refused a statement: \(error.message)")
    }
    return ServerError(500, "the database with the uploads of this server refused a statement")
  }

  func note(_ line: String) { state.withLock { $0.lines.append(line) } }

  /// Lines for the operator that were not taken yet.
  func take() -> [String] {
    state.withLock { state in
      defer { state.lines = [] }
      return state.lines
    }
  }
}
