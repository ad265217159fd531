import Blobs
import Synchronization

/// A bounded set of threads for what is slow: fsync, compare, rename, listings.
///
/// `BlockingPool` never ends its threads; a server must, since it can be stopped. Each thread waits at a desk of its
/// own, so that a piece of work wakes one thread and not all of them.
final class Workers: Sendable {
  private typealias Work = @Sendable () -> Void
  private enum Order: Sendable {
    case work(Work)
    case end
  }
  private typealias Desk = Monitor<Order?>

  private struct State {
    /// Not begun, because every thread is busy.
    var queue: [Work] = []
    /// The desks where threads wait; the one that came last is taken first, its memory is warm.
    var idle: [Desk] = []
    var started = 0
    var ended = false
  }
  private let state = Mutex(State())
  private let running = Monitor(0)
  private let limit: Int

  init(threads limit: Int) { self.limit = limit }

  /// Runs `work` on one of the threads, after what was submitted before it has begun.
  func submit(_ work: @escaping @Sendable () -> Void) {
    enum Taker { case desk(Desk), newThread, queue }
    let taker: Taker = state.withLock { state in
      if let desk = state.idle.popLast() { return .desk(desk) }
      if state.started < limit, !state.ended {
        state.started += 1
        return .newThread
      }
      state.queue.append(work)
      return .queue
    }
    switch taker {
    case .desk(let desk): desk.update { $0 = .work(work) }
    case .newThread:
      running.update { $0 += 1 }
      let desk = Desk(.work(work))
      SystemThread.start("fullbore-work") { self.serve(desk) }
    case .queue: break
    }
  }

  private func serve(_ desk: Desk) {
    while perform(order(at: desk)) {
      let next: Order? = state.withLock { state in
        if !state.queue.isEmpty { return .work(state.queue.removeFirst()) }
        if state.ended { return .end }
        state.idle.append(desk)
        return nil
      }
      if let next { desk.update { $0 = next } }
    }
    running.update { $0 -= 1 }
  }

  private func order(at desk: Desk) -> Order {
    desk.wait { order in
      defer { order = nil }
      return order
    }
  }

  /// false: there is no more. Nothing of the work is held when it returns: a file that was deleted meanwhile is freed
  /// here, and not when the thread comes to its next work.
  private func perform(_ order: Order) -> Bool {
    guard case .work(let work) = order else { return false }
    work()
    return true
  }

  /// Blocks until all that was submitted is done and the threads have ended. Nothing may be submitted after.
  func finish() {
    let idle = state.withLock { state in
      state.ended = true
      defer { state.idle = [] }
      return state.idle
    }
    for desk in idle { desk.update { $0 = .end } }
    running.wait { $0 == 0 ? () : nil }
  }
}
