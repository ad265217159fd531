import Blobs
import Synchronization

// Ends of uploads and of pauses, as the user or the app wants them.
extension UploadBoard {
  /// The last seat that was taken.
  var lastSeat: Int { state.withLock { $0.last } }

  /// Cancels the uploads with this name, also those that have not begun; nil: all. Those of seats after `last` are not
  /// affected. Returns the tasks that are about to end.
  func cancel(_ name: BytePath?, upTo last: Int) -> [Task<Void, Never>] {
    let (tasks, reservations) = state.withLock { state in
      let keys = state.running.filter { (name == nil || $0.value.upload.name == name) && $0.value.seat <= last }.map(
        \.key)
      for key in keys { state.running[key]?.isCancelled = true }
      let numbers = state.seats.filter { (name == nil || $0.value.name == name) && $0.key <= last }.map(\.key)
      for number in numbers { state.seats[number]?.isCancelled = true }
      return (keys.compactMap { state.running[$0]?.task }, numbers.compactMap { state.seats[$0]?.reservation })
    }
    for task in tasks { task.cancel() }
    for reservation in reservations { reservation.cancel() }
    return tasks
  }

  /// Whether an upload has this key and was not cancelled, running or waiting for room. A call that looks at its source does
  /// not count, since it may find none.
  func isActive(_ key: String) -> Bool {
    state.withLock { state in
      state.running[key].map { !$0.isCancelled } ?? false
        || state.seats.values.contains { $0.key == key && $0.hasLooked && !$0.isCancelled }
    }
  }

  /// Whether an upload with this key runs.
  func isRunning(_ key: String) -> Bool { state.withLock { $0.running[key] != nil } }

  // MARK: Pauses

  /// The upload waits until `pause` ends; nil: it goes on.
  func setPause(_ pause: Task<Void, Never>?, _ key: String) { state.withLock { $0.running[key]?.pause = pause } }

  /// Ends all pauses.
  func endPauses() {
    let pauses = state.withLock { $0.running.values.compactMap(\.pause) }
    for pause in pauses { pause.cancel() }
  }
}
