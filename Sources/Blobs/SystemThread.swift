import Platform

/// Starts dedicated threads for work that blocks. SIGPIPE is blocked on them.
package enum SystemThread {
  fileprivate final class Start {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a detached thread. `name` is cut to 15 characters because the system limits it; `stack` is in bytes. Traps if
  /// the system allows no more threads.
  package static func start(_ name: String, stack: Int = 512 << 10, _ body: @escaping @Sendable () -> Void) {
    let isStarted = startIfAllowed(name, stack: stack, body)
    precondition(isStarted, "the system allows no more threads (ulimit -u, TasksMax): error \(errno)")
  }

  /// Like `start`, but returns false, with `errno`, if the system allows no more threads.
  package static func startIfAllowed(
    _ name: String, stack: Int = 512 << 10, _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let start = Unmanaged.passRetained(Start(String(name.prefix(15)), body))
    let status = create(start.toOpaque(), stack: stack)
    if status == 0 { return true }
    start.release()
    errno = status
    return false
  }

  private static func create(_ context: UnsafeMutableRawPointer, stack: Int) -> Int32 {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stack)
    #if os(Linux)
      var thread = pthread_t()
    #else
      var thread: pthread_t?
    #endif
    let status = pthread_create(&thread, &attributes, enter, context)
    pthread_attr_destroy(&attributes)
    return status
  }
}

/// A lock with a condition variable, which `Mutex` lacks: state that threads can wait for.
package final class Monitor<State>: @unchecked Sendable {
  // `lock` guards `state`. Both C objects are allocated so that their addresses are stable.
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var state: State

  package init(_ state: sending State) {
    self.state = state
    pthread_mutex_init(lock, nil)
    #if os(Linux)
      var attributes = pthread_condattr_t()
      pthread_condattr_init(&attributes)
      pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
      pthread_cond_init(condition, &attributes)
      pthread_condattr_destroy(&attributes)
    #else
      pthread_cond_init(condition, nil)
    #endif
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(lock)
    condition.deallocate()
    lock.deallocate()
  }

  /// Which waiting threads an update wakes. `one`: any single thread is enough; `none`: the update lets no thread
  /// proceed.
  package enum Wake { case all, one, none }

  /// Changes the state and wakes the threads that wait for a change.
  package func update<Result, Failure>(
    waking wake: Wake = .all, _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(lock)
    defer {
      pthread_mutex_unlock(lock)
      // Signalled after unlocking; otherwise a woken thread would find the lock taken and sleep again.
      switch wake {
      case .all: pthread_cond_broadcast(condition)
      case .one: pthread_cond_signal(condition)
      case .none: break
      }
    }
    return try body(&state)
  }

  /// Waits until `body` returns a value; it is called again after each `update`.
  package func wait<Result, Failure>(until body: (inout State) throws(Failure) -> Result?) throws(Failure) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while true {
      if let result = try body(&state) { return result }
      pthread_cond_wait(condition, lock)
    }
  }

  /// Like `wait(until:)`, but returns nil once `limit` has passed.
  package func wait<Result, Failure>(
    atMost limit: Duration, until body: (inout State) throws(Failure) -> Result?
  ) throws(Failure) -> Result? {
    let clock = MonotonicClock()
    let deadline = clock.now + limit
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while true {
      if let result = try body(&state) { return result }
      let now = clock.now
      if now >= deadline { return nil }
      #if os(Linux)
        var time = timespec(deadline)
        pthread_cond_timedwait(condition, lock, &time)
      #else
        var time = timespec(deadline - now)
        pthread_cond_timedwait_relative_np(condition, lock, &time)
      #endif
    }
  }
}

extension timespec {
  fileprivate init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(tv_sec: time_t(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  }
}

#if os(Linux)
  private func enter(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? { run(context!) }
#else
  private func enter(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? { run(context) }
#endif

private func run(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  let start = Unmanaged<SystemThread.Start>.fromOpaque(context).takeRetainedValue()
  #if os(Linux)
    fb_set_thread_name(start.name)
  #else
    pthread_setname_np(start.name)
  #endif
  var blocked = sigset_t()
  sigemptyset(&blocked)
  sigaddset(&blocked, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &blocked, nil)
  start.body()
  return nil
}
