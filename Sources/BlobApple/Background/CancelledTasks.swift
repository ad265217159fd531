import Synchronization

/// The background tasks that were cancelled, and that the system has not ended yet. It may never tell the end of one.
final class CancelledTasks: Sendable {
  /// Waits for the end of the tasks that send another version, or another source to the same place.
  private struct Waiter {
    var upload: String
    var version: String
    /// The session of the uploader that waits.
    var session: String
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
    /// The sessions whose uploaders take over what earlier processes have left. They may cancel some of it.
    var openings: Set<String> = []
    var last: UInt64 = 0

    func mustWait(_ waiter: Waiter) -> Bool {
      labels.contains(where: waiter.waits) || openings.contains { $0 != waiter.session }
    }
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
    endWaits { state in
      guard let index = state.labels.firstIndex(where: { $0.text == text }) else { return nil }
      let label = state.labels.remove(at: index)
      return { $0.waits(for: label) }
    }
  }

  /// The uploader of a session begins to take over what earlier processes have left, and may cancel some of it.
  func beginOpening(_ session: String) { state.withLock { _ = $0.openings.insert(session) } }

  func endOpening(_ session: String) {
    endWaits { state in
      state.openings.remove(session)
      return { $0.session != session }
    }
  }

  /// Ends those of the waits that `body` has chosen that have nothing to wait for any more.
  private func endWaits(_ body: (inout State) -> ((Waiter) -> Bool)?) {
    let over = state.withLock { state -> [Waiter] in
      guard let isMeant = body(&state) else { return [] }
      return state.waiters.values.filter { isMeant($0) && !state.mustWait($0) }
    }
    for waiter in over { waiter.stream.finish() }
  }

  /// Waits until the system has ended the tasks that send another version of an upload, or another source to its place: a
  /// server that gets both at the same time may store the earlier one last. Gives up after `limit`. `session`: that of the
  /// caller.
  func wait(_ upload: String, otherThan version: String, in session: String, within limit: Duration) async {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    let waiter = Waiter(upload: upload, version: version, session: session, stream: continuation)
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
