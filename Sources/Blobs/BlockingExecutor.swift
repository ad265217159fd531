/// Runs an actor's work on one thread of its own, so that blocking calls stall no cooperative thread.
package final class BlockingExecutor: SerialExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var ended = false
  }
  private let state = Monitor(State())

  package init(_ name: String) {
    // Taken here: the executor may be gone before its thread begins.
    let executor = asUnownedSerialExecutor()
    SystemThread.start(name) { [state] in
      while true {
        let jobs: [UnownedJob] = state.wait { state in
          if state.jobs.isEmpty { return state.ended ? [] : nil }
          defer { state.jobs = [] }
          return state.jobs
        }
        if jobs.isEmpty { return }
        for job in jobs { job.runSynchronously(on: executor) }
      }
    }
  }

  deinit { state.update { $0.ended = true } }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.update { $0.jobs.append(job) }
  }

  package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// Runs blocking calls on a few shared threads, started as they are needed and kept.
package final class BlockingPool: Sendable {
  /// For short calls on local files.
  package static let shared = BlockingPool("fullbore-io", threads: 4)

  private struct State {
    var work: [@Sendable () -> Void] = []
    var threads = 0
    /// Threads that will take the next work, those that are only starting included.
    var idle = 0
    var ended = false
  }
  private let state = Monitor(State())
  private let name: String
  private let limit: Int

  package init(_ name: String, threads limit: Int) {
    precondition(limit > 0)
    self.name = name
    self.limit = limit
  }

  deinit { state.update { $0.ended = true } }

  /// Runs `body` on a thread of the pool. It keeps its thread until it returns: bound what it waits for.
  package func run<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      submit { continuation.resume(returning: Swift.Result(catching: body)) }
    }
    return try result.get()
  }

  private func submit(_ work: @escaping @Sendable () -> Void) {
    let start = state.update { state in
      state.work.append(work)
      if state.idle >= state.work.count || state.threads == limit { return false }
      state.threads += 1
      state.idle += 1
      return true
    }
    if start { SystemThread.start(name) { [state] in Self.serve(state) } }
  }

  private static func serve(_ state: Monitor<State>) {
    while true {
      // Taken and no longer idle in one step: else `submit` would count on a thread that is busy.
      let work: (@Sendable () -> Void)? = state.wait { state in
        if state.work.isEmpty { return state.ended ? .some(nil) : nil }
        state.idle -= 1
        return state.work.removeFirst()
      }
      guard let work else { return }
      work()
      state.update { $0.idle += 1 }
    }
  }
}
