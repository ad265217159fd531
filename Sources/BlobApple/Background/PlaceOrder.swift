import Synchronization

/// The order in which uploads send to their places: to each place one after the other, so that the source that was added last
/// is stored last.
final class PlaceOrder: Sendable {
  /// One upload's turn at its place.
  struct Turn {
    var number: Int
    /// The upload: see `TaskLabel.upload`.
    var key: String
    var place: String { TaskLabel.place(ofUpload: key) }

    /// Uploads of one source do not wait for each other here: the journal has one entry for all of them.
    func isBefore(_ other: Turn) -> Bool { number < other.number && key != other.key }
  }
  private struct Waiter {
    var turn: Turn
    var wakeUp: WakeUp
    var continuation: CheckedContinuation<Void, Never>
  }
  private struct State {
    var last = 0
    /// The turns that have not ended, by their places.
    var turns: [String: [Turn]] = [:]
    /// By the numbers of their turns.
    var waiters: [Int: Waiter] = [:]
    var lastAddition: Int64 = 0

    func isFirst(_ turn: Turn) -> Bool { !turns[turn.place, default: []].contains { $0.isBefore(turn) } }

    mutating func begin(_ key: String) -> Turn {
      last += 1
      let turn = Turn(number: last, key: key)
      turns[turn.place, default: []].append(turn)
      return turn
    }
  }
  private let state = Mutex(State())

  /// Takes the next turn at the place of an upload.
  func begin(_ key: String) -> Turn { state.withLock { $0.begin(key) } }

  /// The same if other sources have later turns there than `turn`; nil: there are none.
  func begin(behindOthersThan turn: Turn) -> Turn? {
    state.withLock { state in
      guard state.turns[turn.place, default: []].contains(where: { turn.isBefore($0) }) else { return nil }
      return state.begin(turn.key)
    }
  }

  /// Whether no other source has an earlier turn at the place.
  func isFirst(_ turn: Turn) -> Bool { state.withLock { $0.isFirst(turn) } }

  /// Whether another source has a turn at the place of this upload.
  func hasOthers(than key: String) -> Bool {
    state.withLock { $0.turns[TaskLabel.place(ofUpload: key), default: []].contains { $0.key != key } }
  }

  /// Whether an uploader of this process is sending this upload, or is to.
  func has(_ key: String) -> Bool {
    state.withLock { $0.turns[TaskLabel.place(ofUpload: key), default: []].contains { $0.key == key } }
  }

  /// Waits until the turn is the first one, or the task is cancelled. The caller does not count as working while it waits.
  func wait(for turn: Turn, _ wakeUp: WakeUp) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = state.withLock { state in
          if state.isFirst(turn) || Task.isCancelled { return false }
          state.waiters[turn.number] = Waiter(turn: turn, wakeUp: wakeUp, continuation: continuation)
          return true
        }
        if !waits { return continuation.resume() }
        wakeUp.leave()
        // The cancellation may have come before the waiter was there.
        if Task.isCancelled { giveUp(turn) }
      }
    } onCancel: {
      giveUp(turn)
    }
  }

  /// The turn has ended. Those that it has held up count as working from here on, so call this before `WakeUp.leave`.
  func end(_ turn: Turn) {
    let next = state.withLock { state -> [Waiter] in
      let place = turn.place
      state.turns[place]?.removeAll { $0.number == turn.number }
      guard let rest = state.turns[place] else { return [] }
      if rest.isEmpty { state.turns[place] = nil }
      return rest.filter { state.isFirst($0) }.compactMap { state.waiters.removeValue(forKey: $0.number) }
    }
    for waiter in next { resume(waiter) }
  }

  private func giveUp(_ turn: Turn) {
    if let waiter = state.withLock({ $0.waiters.removeValue(forKey: turn.number) }) { resume(waiter) }
  }

  private func resume(_ waiter: Waiter) {
    waiter.wakeUp.enter()
    waiter.continuation.resume()
  }

  // MARK: Additions

  /// The number for what the journal keeps of a call of `add`.
  func nextAddition() -> Int64 {
    state.withLock { state in
      state.lastAddition = state.lastAddition.addingClamped(1)
      return state.lastAddition
    }
  }

  /// The journal has an addition with this number.
  func note(addition number: Int64) { state.withLock { $0.lastAddition = max($0.lastAddition, number) } }
}
