import Synchronization

/// A clock for retries of background uploads. A short pause is waited for. A long one ends at once and becomes the delay
/// of the next background task, because the system may suspend the app meanwhile, and wakes it only for a task.
final class DeferringClock: Clock {
  typealias Instant = ContinuousClock.Instant

  private let longestPause: Duration
  private let earliest = Mutex<Instant?>(nil)

  init(longestPause: Duration) { self.longestPause = longestPause }

  var now: Instant { .now }
  var minimumResolution: Duration { ContinuousClock().minimumResolution }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    if Instant.now.duration(to: deadline) <= longestPause {
      return try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
    }
    try Task.checkCancellation()
    earliest.withLock { $0 = max($0 ?? deadline, deadline) }
  }

  /// The delay for the next task: the rest of the pauses since the last call.
  func takeDelay() -> Duration {
    guard let earliest = earliest.withLock({ $0.take() }) else { return .zero }
    return max(.zero, Instant.now.duration(to: earliest))
  }
}
