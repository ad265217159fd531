import Platform
import Synchronization

/// Runs an actor's work on a dedicated thread, so that blocking calls do not stall a cooperative thread.
package final class BlockingExecutor: SerialExecutor {
  private let thread = JobThread()

  package init(_ name: String) {
    // Created here because the executor may be deallocated before its thread starts.
    let executor = asUnownedSerialExecutor()
    thread.start(name) { job in withAutoreleasePool { job.runSynchronously(on: executor) } }
  }

  deinit { thread.end() }

  package func enqueue(_ job: consuming ExecutorJob) {
    thread.add(UnownedJob(job))
  }

  package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// Runs blocking calls on a few shared threads, which are started as needed.
package final class BlockingPool: Sendable {
  /// For short calls on local files.
  package static let shared = BlockingPool("fullbore-io", threads: 4)

  private struct State {
    /// Each closure returns whether its thread still belongs to the pool afterwards.
    var work: [@Sendable () -> Bool] = []
    var threads = 0
    /// Threads that can take the next work item, including those that are still starting.
    var idle = 0
    var ended = false
  }
  private let state = Monitor(State())
  private let name: String
  private let limit: Int
  private let patience: Duration?

  /// A thread that is idle for `patience` ends; nil: idle threads never end.
  package init(_ name: String, threads limit: Int, patience: Duration? = nil) {
    precondition(limit > 0)
    self.name = name
    self.limit = limit
    self.patience = patience
  }

  /// The number of threads, busy or idle.
  package var threads: Int { state.update(waking: .none) { $0.threads } }

  deinit { state.update { $0.ended = true } }

  /// Runs `body` on a thread of the pool. `body` occupies the thread until it returns, so bound its waits.
  package func run<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      submit { continuation.resume(returning: Swift.Result(catching: body)) }
    }
    return try result.get()
  }

  /// Like `run`, for a call that may never return, such as reading a file whose server is gone. Cancelling the task
  /// ends the wait at once with nil. `body` is informed through its `Cancellation` and keeps its thread until it
  /// returns; meanwhile another thread replaces that thread in the pool.
  package func runUntilCancelled<Result: Sendable>(
    _ body: @escaping @Sendable (Cancellation) -> Result
  ) async -> Result? {
    let call = CancellableCall<Result>()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if !call.wait(continuation) { return continuation.resume(returning: nil) }
        enqueue {
          if !call.begin() { return true }
          return call.end(body(call.cancellation))
        }
      }
    } onCancel: {
      if call.cancel() { abandonThread() }
    }
  }

  /// Like `run`, for callers that need no result.
  package func submit(_ work: @escaping @Sendable () -> Void) {
    enqueue {
      work()
      return true
    }
  }

  /// Stops counting a thread whose call may never return, and starts a replacement if work is waiting.
  private func abandonThread() {
    let start = state.update(waking: .none) { state in
      state.threads -= 1
      if state.work.count <= state.idle || state.threads >= limit { return false }
      state.threads += 1
      state.idle += 1
      return true
    }
    if start { startThread() }
  }

  private func startThread() { SystemThread.start(name) { [state, patience] in Self.serve(state, patience) } }

  private func enqueue(_ work: @escaping @Sendable () -> Bool) {
    let start = state.update(waking: .one) { state in
      state.work.append(work)
      if state.idle >= state.work.count || state.threads == limit { return false }
      state.threads += 1
      state.idle += 1
      return true
    }
    if start { startThread() }
  }

  private static func serve(_ state: Monitor<State>, _ patience: Duration?) {
    while let work = next(state, patience) {
      if !withAutoreleasePool(work) { return }
      state.update(waking: .none) { $0.idle += 1 }
    }
  }

  /// Waits for work. nil: the thread must end, and the pool no longer counts it.
  private static func next(_ state: Monitor<State>, _ patience: Duration?) -> (@Sendable () -> Bool)? {
    /// Takes work and decrements `idle` in one step; otherwise `submit` would count on a thread that is busy or gone.
    func take(_ state: inout State, giveUp: Bool) -> (@Sendable () -> Bool)?? {
      if state.work.isEmpty && !giveUp { return nil }
      state.idle -= 1
      if !state.work.isEmpty { return state.work.removeFirst() }
      state.threads -= 1
      return .some(nil)
    }
    guard let patience else { return state.wait { take(&$0, giveUp: $0.ended) } }
    return state.wait(atMost: patience) { take(&$0, giveUp: $0.ended) }
      ?? state.update { take(&$0, giveUp: true) ?? nil }
  }
}

/// One call of `runUntilCancelled`. Its phase decides who resumes the task, exactly once.
private final class CancellableCall<Result: Sendable>: Sendable {
  private enum Phase { case queued, running, over }
  private struct State {
    var phase = Phase.queued
    var isCancelled = false
    var waiter: CheckedContinuation<Result?, Never>?
  }
  let cancellation = Cancellation()
  private let state = Mutex(State())

  /// Returns false if the call was already cancelled.
  func wait(_ waiter: CheckedContinuation<Result?, Never>) -> Bool {
    state.withLock { state in
      if state.isCancelled { return false }
      state.waiter = waiter
      return true
    }
  }

  /// Returns false if the call was cancelled while it waited for a thread.
  func begin() -> Bool {
    state.withLock { state in
      if state.isCancelled { return false }
      state.phase = .running
      return true
    }
  }

  /// Returns false if the call was cancelled meanwhile, so its thread no longer belongs to the pool.
  func end(_ result: Result) -> Bool {
    let waiter = state.withLock { state in
      state.phase = .over
      return state.waiter.take()
    }
    waiter?.resume(returning: result)
    return waiter != nil
  }

  /// Returns true if a thread is executing the call.
  func cancel() -> Bool {
    let (waiter, isRunning) = state.withLock { state in
      state.isCancelled = true
      return (state.waiter.take(), state.phase == .running)
    }
    waiter?.resume(returning: nil)
    cancellation.cancel()
    return isRunning && waiter != nil
  }
}
