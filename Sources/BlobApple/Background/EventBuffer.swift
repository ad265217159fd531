import Synchronization

/// The events that one loop over `BackgroundUploader.events` has not read yet: of each upload the newest one, and every last
/// one. So a loop that is slow, or has stopped reading, takes no more memory than there are uploads.
final class EventBuffer: Sendable {
  private struct Event {
    var key: String
    var upload: BackgroundUpload
  }
  private struct State {
    /// By their numbers, which are consecutive.
    var events: [Int: Event] = [:]
    var next = 0
    /// The number for the next event that is put in.
    var end = 0
    /// The numbers of the events that a later one of the same upload replaces.
    var replaceable: [String: Int] = [:]
    var waiting: [CheckedContinuation<BackgroundUpload?, Never>] = []
    var hasEnded = false

    mutating func take() -> BackgroundUpload? {
      guard let event = events.removeValue(forKey: next) else { return nil }
      if replaceable[event.key] == next { replaceable[event.key] = nil }
      next += 1
      return event.upload
    }
  }
  private let state = Mutex(State())

  /// `isLast`: the upload has ended, so that no later event may replace this one.
  func put(_ upload: BackgroundUpload, of key: String, isLast: Bool) {
    let waiter = state.withLock { state -> CheckedContinuation<BackgroundUpload?, Never>? in
      if state.hasEnded { return nil }
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      let number = state.replaceable[key] ?? state.end
      state.events[number] = Event(key: key, upload: upload)
      state.end = max(state.end, number + 1)
      state.replaceable[key] = isLast ? nil : number
      return nil
    }
    waiter?.resume(returning: upload)
  }

  /// Waits for an event. nil: `end` was called.
  func next() async -> BackgroundUpload? {
    await withCheckedContinuation { continuation in
      let (upload, isNow) = state.withLock { state -> (BackgroundUpload?, Bool) in
        if let upload = state.take() { return (upload, true) }
        if !state.hasEnded { state.waiting.append(continuation) }
        return (nil, state.hasEnded)
      }
      if isNow { continuation.resume(returning: upload) }
    }
  }

  /// The loop was cancelled.
  func end() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      (state.events, state.replaceable) = ([:], [:])
      defer { state.waiting = [] }
      return state.waiting
    }
    for waiter in waiting { waiter.resume(returning: nil) }
  }
}
