import Blobs
import Synchronization

/// The background tasks of which the outcome was not used yet: those of this process, and those that an earlier process
/// of the app has left to the system.
final class TaskRegistry: BackgroundTaskReceiver {
  private struct Entry {
    var label: TaskLabel
    /// The system has the task. Otherwise there is only a piece, whose task may have ended without anybody to tell.
    var isRunning: Bool
    var end: BackgroundTaskEnd?
    var waiter: CheckedContinuation<BackgroundTaskEnd?, Never>?
    var progress: (@Sendable (Int64) -> Void)?
  }
  private struct State {
    var entries: [String: Entry] = [:]
    /// Uploads that use the outcomes of their tasks.
    var running: Set<String> = []
    /// The uploads that go on by themselves are among `running`; what other tasks have to tell is of no use.
    var dropsOthers = false
    /// `begin` was called.
    var hasBegun = false
    /// Tasks whose entries were removed before their events came. An event of one makes no entry again.
    var removed: Set<String> = []

    /// Whether events may come of tasks that have no entry yet: before the caller of `connect` has told which tasks there
    /// are, or before all earlier events were delivered.
    var mayLearnOfTasks: Bool { !hasBegun || !isSettled }

    mutating func remove(_ label: TaskLabel, _ cancelled: CancelledTasks) -> Entry? {
      if mayLearnOfTasks { removed.insert(label.text) }
      let entry = entries.removeValue(forKey: label.text)
      if let entry, entry.isRunning, entry.end == nil { cancelled.add(label) }
      return entry
    }

    /// Whether nobody waits for the outcome, or will.
    func isUnused(_ entry: Entry) -> Bool {
      dropsOthers && entry.end != nil && entry.waiter == nil && !running.contains(entry.label.upload)
    }
    /// The system has delivered the events of tasks that ended before this process was there.
    var isSettled = false
  }
  private let state = Mutex(State())
  private let spool: PieceSpool
  private let wakeUp: WakeUp
  private let cancelled: CancelledTasks

  init(_ spool: PieceSpool, _ wakeUp: WakeUp, _ cancelled: CancelledTasks = CancelledTasks()) {
    self.spool = spool
    self.wakeUp = wakeUp
    self.cancelled = cancelled
  }

  /// Adds what an earlier process has left. `pieces` are in the spool.
  func begin(running: [TaskLabel], pieces: [TaskLabel]) {
    state.withLock { state in
      state.hasBegun = true
      for (labels, isRunning) in [(pieces, false), (running, true)] {
        for label in labels {
          state.entries[label.text, default: Entry(label: label, isRunning: isRunning)].isRunning = isRunning
        }
      }
      if !state.mayLearnOfTasks { state.removed = [] }
    }
  }

  /// The upload waits for the outcomes of its tasks from now on.
  func start(_ upload: String) { state.withLock { _ = $0.running.insert(upload) } }

  /// The upload has ended, and has no tasks any more.
  func stop(_ upload: String) { state.withLock { _ = $0.running.remove(upload) } }

  /// Deletes the piece of each ended task whose upload is not running, now and in future: it would take up room in the
  /// spool for as long as the upload is not added again. Then the server is asked instead.
  func dropOthers() {
    let unused = state.withLock { state -> [TaskLabel] in
      state.dropsOthers = true
      let unused = state.entries.values.filter { state.isUnused($0) }.map(\.label)
      for label in unused { state.entries[label.text] = nil }
      return unused
    }
    for label in unused { spool.remove(label) }
  }

  /// Adds a task that is about to start.
  func add(_ label: TaskLabel, progress: @escaping @Sendable (Int64) -> Void) {
    state.withLock { state in
      // The system may resume a task under its label.
      state.removed.remove(label.text)
      state.entries[label.text] = Entry(label: label, isRunning: true, progress: progress)
    }
  }

  func follow(_ label: TaskLabel, progress: @escaping @Sendable (Int64) -> Void) {
    state.withLock { $0.entries[label.text]?.progress = progress }
  }

  /// The tasks of an upload, in no particular order; nil: of all.
  func pending(_ upload: String? = nil) -> [TaskLabel] {
    state.withLock { $0.entries.values.map(\.label).filter { upload == nil || $0.upload == upload } }
  }

  /// The uploads that have tasks.
  var uploads: Set<String> { state.withLock { Set($0.entries.values.map(\.label.upload)) } }

  /// Waits for the end of a task, and removes its entry; its piece stays. nil: the task of the caller was cancelled, or
  /// the system does not know the background task. The caller does not count as working while it waits.
  func end(of label: TaskLabel) async -> BackgroundTaskEnd? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let end = state.withLock { state -> BackgroundTaskEnd?? in
          guard let entry = state.entries[label.text] else { return .some(nil) }
          if entry.end != nil || Task.isCancelled || !entry.isRunning && state.isSettled {
            _ = state.remove(label, cancelled)
            return .some(entry.end)
          }
          state.entries[label.text]?.waiter = continuation
          return nil
        }
        if let end { continuation.resume(returning: end) } else { wakeUp.leave() }
        // The cancellation may have come before the waiter was there.
        if end == nil, Task.isCancelled { giveUp(label) }
      }
    } onCancel: {
      giveUp(label)
    }
  }

  /// Removes an entry; a later event of its task is ignored.
  func giveUp(_ label: TaskLabel) {
    resume(state.withLock { $0.remove(label, cancelled)?.waiter }, returning: nil)
  }

  /// The events of tasks that ended before this process was there were delivered, or will not be: pieces without a task
  /// are of no use any more.
  func settle() {
    let lost = state.withLock { state -> [Entry] in
      state.isSettled = true
      let lost = state.entries.values.filter { !$0.isRunning && $0.end == nil }
      for entry in lost { state.entries[entry.label.text] = nil }
      if !state.mayLearnOfTasks { state.removed = [] }
      return Array(lost)
    }
    for entry in lost {
      // The upload that waits for a task removes its piece.
      if entry.waiter == nil { spool.remove(entry.label) }
      resume(entry.waiter, returning: nil)
    }
  }

  private func resume(
    _ waiter: CheckedContinuation<BackgroundTaskEnd?, Never>?, returning end: BackgroundTaskEnd?
  ) {
    guard let waiter else { return }
    wakeUp.enter()
    waiter.resume(returning: end)
  }

  // MARK: BackgroundTaskReceiver

  func sent(_ label: String, total: Int64) { state.withLock { $0.entries[label]?.progress }?(total) }

  func ended(_ text: String, _ end: BackgroundTaskEnd) {
    cancelled.ended(text)
    let (waiter, unused) = state.withLock { state -> (CheckedContinuation<BackgroundTaskEnd?, Never>?, TaskLabel?) in
      var entry: Entry
      if let known = state.entries[text] {
        entry = known
      } else if state.mayLearnOfTasks, !state.removed.contains(text), let label = TaskLabel(text) {
        entry = Entry(label: label, isRunning: true)
      } else {
        return (nil, nil)
      }
      entry.end = end
      let isUnused = state.isUnused(entry)
      state.entries[text] = entry.waiter != nil || isUnused ? nil : entry
      return (entry.waiter, isUnused ? entry.label : nil)
    }
    if let unused { spool.remove(unused) }
    resume(waiter, returning: end)
  }

  func deliveredAll() {
    settle()
    wakeUp.deliveredAll()
  }
}
