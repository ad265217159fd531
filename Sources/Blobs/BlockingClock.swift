import Platform

/// A clock for blocking threads; `Clock.sleep` would need a task. Tests inject their own.
package protocol BlockingClock: Sendable {
  /// Time since a fixed moment. Monotonic.
  var now: Duration { get }

  /// Blocks for `duration`. Throws `.cancelled` as soon as `cancel` is cancelled; the message names `operation`.
  func sleep(_ duration: Duration, _ cancel: Cancellation, _ operation: String) throws(BlobError)
}

/// The system's monotonic clock.
package struct MonotonicClock: BlockingClock {
  package init() {}

  package var now: Duration {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  package func sleep(_ duration: Duration, _ cancel: Cancellation, _ operation: String) throws(BlobError) {
    let wakeup = Monitor(())
    _ = cancel.whileWaiting(wakeUp: { wakeup.update { _ in } }) {
      wakeup.wait(atMost: duration) { _ in cancel.isCancelled ? true : nil }
    }
    try cancel.check(operation)
  }
}
