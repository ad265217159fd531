import BlobHTTP
import Synchronization

/// Servers that let a request wait although they serve others.
///
/// Some servers serve one connection after the other, or a few at once: a connection that this process keeps open for a
/// later request occupies such a place, and the requests on all other connections wait until it is closed. So a worker
/// whose request waits has the idle connections to the server closed, and after a longer time the next connection on
/// which an exchange ends. Any thread may use it.
final class StalledServers: Sendable {
  /// How long a worker waits at a time without an event, in milliseconds, before it reports that its request waits.
  static let shortest: Int32 = 2000
  /// The time between two closings of connections that would have been used again. Servers that merely take long
  /// lose little by it.
  private static let interval = Duration.seconds(10)

  private struct State {
    var server: HTTPURL?
    var last = SuspendingClock.now
  }
  private let state = Mutex(State())
  private let isUsed = Atomic(false)

  /// Reports that a request to this URL waits.
  func note(_ url: HTTPURL) {
    state.withLock { state in
      if SuspendingClock.now - state.last < Self.interval { return }
      state = State(server: url)
      isUsed.store(true, ordering: .relaxed)
    }
  }

  /// Whether the worker that has ended an exchange with this server must close its connection: only once for each
  /// report.
  func take(at url: HTTPURL) -> Bool {
    guard isUsed.load(ordering: .relaxed) else { return false }
    return state.withLock { state in
      guard let server = state.server, server.isAtServer(of: url) else { return false }
      state.server = nil
      isUsed.store(false, ordering: .relaxed)
      return true
    }
  }
}
