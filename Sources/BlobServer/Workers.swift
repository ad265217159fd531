import Blobs
import Synchronization

/// A bounded set of threads for slow work: fsync, comparing, renaming, listing folders.
///
/// `BlockingPool` never ends its threads; a server must, because it can be stopped. Each thread waits on a monitor of
/// its own, so that a work item wakes one thread and not all of them.
final class Workers: Sendable {
  private typealias Work = @Sendable () -> Void
  private enum Order: Sendable {
    case work(Work)
    case end
  }
  private typealias Inbox = Monitor<Order?>

  private struct State {
    /// Work that has not started because every thread is busy.
    var queue: [Work] = []
    /// The monitors of idle threads. The one added last is used first, because its memory is still in the cache.
    var idle: [Inbox] = []
    var started = 0
    var ended = false
  }
  private let state = Mutex(State())
  private let running = Monitor(0)
  private let limit: Int
  private let startThread: @Sendable (@escaping @Sendable () -> Void) -> Bool

  /// `startThread`: returns false if the system allows no more threads.
  init(
    threads limit: Int,
    startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = {
      SystemThread.startIfAllowed("fullbore-work", $0)
    }
  ) {
    self.limit = limit
    self.startThread = startThread
  }

  /// Runs `work` on one of the threads, after all work submitted earlier has started.
  func submit(_ work: @escaping @Sendable () -> Void) {
    enum Assignee { case inbox(Inbox), newThread, queue }
    let assignee: Assignee = state.withLock { state in
      if let inbox = state.idle.popLast() { return .inbox(inbox) }
      if state.started < limit, !state.ended {
        state.started += 1
        return .newThread
      }
      state.queue.append(work)
      return .queue
    }
    switch assignee {
    case .inbox(let inbox): inbox.update { $0 = .work(work) }
    case .newThread:
      running.update { $0 += 1 }
      let inbox = Inbox(.work(work))
      if !startThread({ self.serve(inbox) }) { leave(work) }
    case .queue: break
    }
  }

  /// Leaves `work` to the other threads, since the system allows no more. If there is none, the caller does it.
  private func leave(_ work: @escaping Work) {
    enum Assignee { case inbox(Inbox), caller, queue }
    running.update { $0 -= 1 }
    let assignee = state.withLock { state -> Assignee in
      state.started -= 1
      if let inbox = state.idle.popLast() { return .inbox(inbox) }
      if state.started == 0 { return .caller }
      state.queue.append(work)
      return .queue
    }
    switch assignee {
    case .inbox(let inbox): inbox.update { $0 = .work(work) }
    case .caller: work()
    case .queue: break
    }
  }

  private func serve(_ inbox: Inbox) {
    while perform(order(at: inbox)) {
      let next: Order? = state.withLock { state in
        if !state.queue.isEmpty { return .work(state.queue.removeFirst()) }
        if state.ended { return .end }
        state.idle.append(inbox)
        return nil
      }
      if let next { inbox.update { $0 = next } }
    }
    running.update { $0 -= 1 }
  }

  private func order(at inbox: Inbox) -> Order {
    inbox.wait { order in
      defer { order = nil }
      return order
    }
  }

  /// Returns false for the order to end. The work is released before this returns: a file that was deleted meanwhile is
  /// freed here, and not when the thread gets its next work.
  private func perform(_ order: Order) -> Bool {
    guard case .work(let work) = order else { return false }
    work()
    return true
  }

  /// Blocks until all submitted work is done and the threads have ended. Nothing may be submitted afterwards.
  func finish() {
    let idle = state.withLock { state in
      state.ended = true
      defer { state.idle = [] }
      return state.idle
    }
    for inbox in idle { inbox.update { $0 = .end } }
    running.wait { $0 == 0 ? () : nil }
  }
}

extension Workers {
  /// Runs `work`, which decides about a request, while the connection is suspended.
  func plan(_ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan {
    .later { decided in
      self.submit {
        do throws(ServerError) {
          decided(try work())
        } catch {
          decided(.refuse(error))
        }
      }
    }
  }
}
