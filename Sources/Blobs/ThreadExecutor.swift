import Platform

/// Runs the tasks that prefer it on one thread of its own, or on the thread that has made them ready: see `ReadyTasks`.
///
/// For many tasks that each do little between two waits. They must not block, as on any executor of tasks.
package final class ThreadExecutor: TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var ended = false
  }
  private let state = Monitor(State())

  package init(_ name: String) {
    // Taken here: the executor may be gone before its thread begins.
    let executor = asUnownedTaskExecutor()
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
    if let here = ReadyTasks.here { return here.add(job, of: self) }
    state.update { $0.jobs.append(job) }
  }
}

/// What a thread makes ready of the tasks of `ThreadExecutor`s, to be run by itself: a task that waited for this thread
/// goes on without another being woken, and finds in the processor's cache what it was given. Of one thread.
package final class ReadyTasks {
  private var jobs: [(job: UnownedJob, executor: ThreadExecutor)] = []
  /// Then the thread has other things to do.
  private static let most = 8

  package init() {}

  /// Calls `body`, and runs what that has made ready, and a few of those that follow; the rest goes to other threads.
  package func run(_ body: () -> Void) {
    Self.set(self)
    body()
    var next = 0
    while next < jobs.count {
      let (job, executor) = jobs[next]
      next += 1
      if next == Self.most { Self.set(nil) }
      job.runSynchronously(on: executor.asUnownedTaskExecutor())
    }
    Self.set(nil)
    jobs.removeAll(keepingCapacity: true)
  }

  fileprivate func add(_ job: UnownedJob, of executor: ThreadExecutor) { jobs.append((job, executor)) }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let status = pthread_key_create(&key, nil)
    precondition(status == 0, "no key for a thread's own data: error \(status)")
    return key
  }()

  /// Those of this thread, while it makes something ready.
  fileprivate static var here: ReadyTasks? {
    pthread_getspecific(key).map { Unmanaged<ReadyTasks>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func set(_ tasks: ReadyTasks?) {
    pthread_setspecific(key, tasks.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) })
  }
}
