import Platform

/// Keeps loops on several threads from telling at the same time, and so out of order. Guarded by its owner's lock.
struct OneTeller {
  private var thread: pthread_t?
  private var depth = 0

  /// False while another thread tells. A listener may run a loop of its own inside its call.
  mutating func begin() -> Bool {
    if let thread, pthread_equal(thread, pthread_self()) == 0 { return false }
    thread = pthread_self()
    depth += 1
    return true
  }

  mutating func end() {
    depth -= 1
    if depth == 0 { thread = nil }
  }
}
