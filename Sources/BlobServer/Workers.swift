import Blobs

/// A bounded set of threads for what is slow: fsync, compare, rename, listings.
///
/// `BlockingPool` never ends its threads; a server must, since it can be stopped.
final class Workers: Sendable {
  private struct State {
    var work: [@Sendable () -> Void] = []
    var threads = 0
    var idle = 0
    var ended = false
  }
  private let state = Monitor(State())
  private let limit: Int

  init(threads limit: Int) { self.limit = limit }

  /// Runs `work` on one of the threads, after what was submitted before it has begun.
  func submit(_ work: @escaping @Sendable () -> Void) {
    let start = state.update { state in
      state.work.append(work)
      if state.idle >= state.work.count || state.threads == limit { return false }
      state.threads += 1
      return true
    }
    if start { SystemThread.start("fullbore-work") { [state] in Self.serve(state) } }
  }

  private static func serve(_ state: Monitor<State>) {
    while true {
      state.update { $0.idle += 1 }
      let work: (@Sendable () -> Void)?? = state.wait { state in
        if !state.work.isEmpty { return .some(state.work.removeFirst()) }
        return state.ended ? .some(nil) : nil
      }
      state.update { $0.idle -= 1 }
      guard let work, let work else { break }
      work()
    }
    state.update { $0.threads -= 1 }
  }

  /// Blocks until all that was submitted is done and the threads have ended.
  func finish() {
    state.update { $0.ended = true }
    state.wait { $0.threads == 0 ? () : nil }
  }
}
