import Platform

/// Runs tasks that prefer this executor on a dedicated thread, or on the thread that made them ready: see `ReadyTasks`.
///
/// For many tasks that do little work between two suspensions. They must not block, as on any task executor.
package final class ThreadExecutor: TaskExecutor {
  private let thread = JobThread()

  package init(_ name: String) {
    // Created here because the executor may be deallocated before its thread starts.
    let executor = asUnownedTaskExecutor()
    thread.start(name) { job in job.runSynchronously(on: executor) }
  }

  deinit { thread.end() }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if let here = ReadyTasks.here { return here.add(job, of: self) }
    thread.add(job)
  }
}

/// Collects tasks of `ThreadExecutor`s that a thread makes ready and runs them on that same thread. A task that waited
/// for this thread continues without waking another thread, and its data is still in the processor's cache. Used by one
/// thread only.
package final class ReadyTasks {
  private var jobs: [(job: UnownedJob, executor: ThreadExecutor)] = []
  /// After this many tasks, the thread stops collecting and continues with other work.
  private static let most = 8

  package init() {}

  /// Calls `body` and runs the tasks that it made ready, and a few that these make ready in turn; the rest go to the
  /// executors' threads.
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

  /// The collector of the current thread while it collects; nil otherwise.
  fileprivate static var here: ReadyTasks? {
    pthread_getspecific(key).map { Unmanaged<ReadyTasks>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func set(_ tasks: ReadyTasks?) {
    pthread_setspecific(key, tasks.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) })
  }
}
