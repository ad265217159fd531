import Platform

/// Ensures that run loops on several threads deliver events one at a time, and so in order. Guarded by its owner's
/// lock.
struct SingleDelivery {
  private var thread: pthread_t?
  private var depth = 0

  /// Returns false while another thread delivers. On the same thread it may be nested: a delegate may run the run loop
  /// inside its call.
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
