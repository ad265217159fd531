import BlobHTTP
import Synchronization

// The connections of idle workers, which only their workers may use.
extension ConnectionPool {
  /// Closes the idle connections to a server that has let a request wait. See `StalledServers`.
  func closeIdle(at url: HTTPURL) {
    state.update(waking: .none) { state in
      for inbox in state.idle where inbox.leads(to: url) {
        inbox.last = nil
        inbox.letGo()
      }
    }
  }

  /// Lets the idle workers examine their connections to a server, and returns once all have.
  func checkIdle(at url: HTTPURL) async {
    await withUnsafeContinuation { (waiter: UnsafeContinuation<Void, Never>) in
      let open = Countdown { waiter.resume() }
      state.update(waking: .none) { state in
        for inbox in state.idle where inbox.leads(to: url) {
          open.add()
          inbox.check { open.end() }
        }
      }
      open.end()
    }
  }
}

/// Calls its closure once everything that was added has ended.
private final class Countdown: Sendable {
  private let open = Atomic(1)
  private let ended: @Sendable () -> Void

  /// Counts one, for the caller to end after it has added the others.
  init(_ ended: @escaping @Sendable () -> Void) { self.ended = ended }

  func add() { open.add(1, ordering: .relaxed) }
  func end() { if open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { ended() } }
}
