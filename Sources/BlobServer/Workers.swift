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
      SystemThread.start("fullbore-work") { self.serve(work) }
    case .queue: break
    }
  }

  private func serve(_ first: @escaping Work) {
    let desk = Desk(nil)
    var order = Order.work(first)
    while case .work(let work) = order {
      work()
      let next: Order? = state.withLock { state in
        if !state.queue.isEmpty { return .work(state.queue.removeFirst()) }
        if state.ended { return .end }
        state.idle.append(desk)
        return nil
      }
      order =
        next
        ?? desk.wait { order in
          defer { order = nil }
          return order
        }
    }
    running.update { $0 -= 1 }
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
