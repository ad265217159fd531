/// A thread that runs the jobs of one executor in the order in which they are added.
struct JobThread: Sendable {
  private struct State {
    var jobs: [UnownedJob] = []
    var ended = false
  }
  private let state = Monitor(State())

  /// Starts the thread, which calls `run` for each job. The caller does this once. The thread does not retain the
  /// executor: it ends after `end`, once all jobs have run.
  func start(_ name: String, _ run: @escaping @Sendable (UnownedJob) -> Void) {
    SystemThread.start(name) { [state] in
      while true {
        let jobs: [UnownedJob] = state.wait { state in
          if state.jobs.isEmpty { return state.ended ? [] : nil }
          defer { state.jobs = [] }
          return state.jobs
        }
        if jobs.isEmpty { return }
        for job in jobs { run(job) }
      }
    }
  }

  func add(_ job: UnownedJob) { state.update { $0.jobs.append(job) } }

  func end() { state.update { $0.ended = true } }
}
