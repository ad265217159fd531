import Blobs
import Platform

/// The number of threads that the system allows this process.
enum ThreadLimit {
  /// The number of threads that any command needs, with some to spare. More connections and sources need more.
  static let fewest = 24

  /// Whether `fewest` threads can run at once. If the system refuses a thread, the runtime waits forever or ends the
  /// process without a message. The threads are only started where a limit is set that could be too low.
  static func isSufficient() -> Bool {
    if !isLow() { return true }
    let (state, count) = (Monitor(State()), Monitor(0))
    var started = 0
    while started < fewest, SystemThread.startIfAllowed("fullbore-limit", { wait(state, count) }) { started += 1 }
    state.update { $0.isOver = true }
    let all = started
    count.wait { $0 == all ? () : nil }
    return started == fewest
  }

  private struct State { var isOver = false }

  private static func wait(_ state: Monitor<State>, _ count: Monitor<Int>) {
    state.wait { $0.isOver ? () : nil }
    count.update { $0 += 1 }
  }

  /// The limit counts all processes and threads of the user. Systems set thousands, if they set one.
  private static func isLow() -> Bool {
    var limit = rlimit()
    #if os(Linux)
      let resource = __rlimit_resource_t(__RLIMIT_NPROC.rawValue)
    #else
      let resource = RLIMIT_NPROC
    #endif
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur < 4096
  }
}
