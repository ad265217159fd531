import Synchronization

/// The background tasks that were cancelled, and that the system has not ended yet. It may never tell the end of one.
final class CancelledTasks: Sendable {
  /// Waits for the end of the tasks that send another version, or another source to the same place.
  private struct Waiter {
    var upload: String
    var version: String
    var stream: AsyncStream<Void>.Continuation

    func waits(for label: TaskLabel) -> Bool {
      label.kind != .question && TaskLabel.haveOnePlace(label.upload, upload)
        && (label.upload != upload || label.version != version)
    }
  }
  /// As many uploads may run in one process.
  private static let most = 1000

  private struct State {
    var labels: [TaskLabel] = []
    var waiters: [UInt64: Waiter] = [:]
    /// How many uploaders take over what earlier processes have left. They may cancel some of it.
    var openings = 0
    var last: UInt64 = 0

    func mustWait(_ waiter: Waiter) -> Bool { openings > 0 || labels.contains(where: waiter.waits) }
  }
  private let state = Mutex(State())

  /// A task of which the system has not told the end was cancelled.
  func add(_ label: TaskLabel) {
    state.withLock { state in
      state.labels.append(label)
      if state.labels.count > Self.most { state.labels.removeFirst() }
    }
  }

  func ended(_ text: String) {
    change { state in
      guard let index = state.labels.firstIndex(where: { $0.text == text }) else { return false }
      state.labels.remove(at: index)
      return true
    }
  }

  /// An uploader begins to take over what earlier processes have left, and may cancel some of it.
  func beginOpening() { state.withLock { $0.openings += 1 } }

  func endOpening() {
    change { state in
      state.openings -= 1
      return true
    }
  }

  /// Ends the waits that have nothing to wait for any more.
  private func change(_ body: (inout State) -> Bool) {
    let over = state.withLock { state in
      body(&state) ? state.waiters.values.filter { !state.mustWait($0) } : []
    }
    for waiter in over { waiter.stream.finish() }
  }

  /// Waits until the system has ended the tasks that send another version of an upload, or another source to its place: a
  /// server that gets both at the same time may store the earlier one last. Gives up after `limit`.
  func wait(_ upload: String, otherThan version: String, within limit: Duration) async {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    let waiter = Waiter(upload: upload, version: version, stream: continuation)
    let number = state.withLock { state -> UInt64? in
      guard state.mustWait(waiter) else { return nil }
      state.last += 1
      state.waiters[state.last] = waiter
      return state.last
    }
    guard let number else { return }
    // Unstructured, because it ends the loop below.
    let timer = Task {
      // A sleep that is cancelled has ended.
      try? await Task.sleep(for: limit)
      continuation.finish()
    }
    for await _ in stream {}
    timer.cancel()
    state.withLock { state in
      state.waiters[number] = nil
      // Nobody waits again for a task that the system does not end.
      if !Task.isCancelled { state.labels.removeAll(where: waiter.waits) }
    }
  }
}
