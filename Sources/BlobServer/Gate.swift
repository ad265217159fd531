import Blobs
import Synchronization

/// Counts requests and suspended connections, so that the server can stop: libmicrohttpd aborts the process when it is
/// stopped with a connection suspended.
final class Gate: Sendable {
  private struct State {
    var requests = 0
    var suspended = 0
    var isClosed = false
  }
  private let state = Mutex(State())

  func enter() { state.withLock { $0.requests += 1 } }
  func leave() { state.withLock { $0.requests -= 1 } }

  /// False once the gate is closed.
  func suspend(_ connection: Connection) -> Bool {
    state.withLock { state in
      if state.isClosed { return false }
      state.suspended += 1
      connection.suspend()
      return true
    }
  }

  func resume(_ connection: Connection) {
    // Under the lock: once it counts as resumed, the daemon may be stopped.
    state.withLock { state in
      connection.resume()
      state.suspended -= 1
    }
  }

  /// Lets no connection be suspended any more.
  func close() { state.withLock { $0.isClosed = true } }

  var isEmpty: Bool { state.withLock { $0.requests == 0 } }
  var hasSuspended: Bool { state.withLock { $0.suspended > 0 } }
}
