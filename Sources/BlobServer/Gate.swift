import Blobs
import CMicrohttpd
import Platform
import Synchronization

/// Counts requests and suspended connections, so that the server can stop: libmicrohttpd aborts the process when it is
/// stopped with a connection suspended.
final class Gate: Sendable {
  private struct State {
    var requests = 0
    var suspended = 0
    var isClosed = false
    var daemon: Handle?
  }
  /// libmicrohttpd's own locks guard what it points to.
  private struct Handle: @unchecked Sendable { let pointer: OpaquePointer }
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

  /// Takes a connection away from libmicrohttpd, in its handler's call. nil: it has kept it.
  func detach(_ connection: Connection, leaving dead: Descriptor) -> Descriptor? {
    state.withLock { $0.isClosed ? nil : connection.detach(leaving: dead) }
  }

  /// Hands connections back to this daemon from now on.
  func open(_ daemon: OpaquePointer) { state.withLock { [daemon = Handle(pointer: daemon)] in $0.daemon = daemon } }

  /// Gives a connection back for its next request. False once the gate is closed.
  func attach(_ socket: Descriptor) -> Bool {
    state.withLock { state in
      guard let daemon = state.daemon, !state.isClosed else { return false }
      let copy = fcntl(socket.number, F_DUPFD_CLOEXEC, 0)
      return copy >= 0 && fb_mhd_add(daemon.pointer, copy) == .YES
    }
  }

  /// Lets no connection be suspended, taken away or given back any more.
  func close() { state.withLock { $0.isClosed = true } }

  var isEmpty: Bool { state.withLock { $0.requests == 0 } }
  var hasSuspended: Bool { state.withLock { $0.suspended > 0 } }
}
