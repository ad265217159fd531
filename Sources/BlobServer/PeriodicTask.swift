import Blobs

/// Runs short work periodically on a thread of its own.
final class PeriodicTask: Sendable {
  private enum State { case idle, running, stopping }
  private let state = Monitor(State.idle)

  func start(every interval: Duration, _ work: @escaping @Sendable () -> Void) {
    state.update { $0 = .running }
    SystemThread.start("fullbore-house") { [state] in
      while state.wait(atMost: interval, until: { $0 == .stopping ? () : nil }) == nil { work() }
      state.update { $0 = .idle }
    }
  }

  /// Blocks until the thread has ended.
  func stop() {
    state.update { if $0 == .running { $0 = .stopping } }
    state.wait { $0 == .idle ? () : nil }
  }
}
