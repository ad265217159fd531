import Synchronization

/// Shares the bytes of a spool among those who write pieces, in the order in which they ask.
final class SpoolRoom: Sendable {
  private struct Waiter {
    var number: UInt64
    var bytes: Int64
    var continuation: CheckedContinuation<Bool, Never>
  }
  private struct State {
    var free: Int64
    var waiting: [Waiter] = []
    var last: UInt64 = 0

    /// Removes those who are next and for whom there is room now.
    mutating func admit() -> [Waiter] {
      var admitted: [Waiter] = []
      while let next = waiting.first, next.bytes <= free {
        free -= next.bytes
        admitted.append(waiting.removeFirst())
      }
      return admitted
    }
  }
  private let state: Mutex<State>
  private let wakeUp: WakeUp

  init(_ bytes: Int64, _ wakeUp: WakeUp) {
    state = Mutex(State(free: bytes))
    self.wakeUp = wakeUp
  }

  /// Takes room for bytes that are in the folder already.
  func take(_ bytes: Int64) { state.withLock { $0.free -= bytes } }

  /// Returns false if the task was cancelled. While it waits, the caller does not count as working.
  func reserve(_ bytes: Int64) async -> Bool {
    let number = state.withLock { state in
      state.last += 1
      return state.last
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled { return continuation.resume(returning: false) }
        let isFree = state.withLock { state in
          if state.waiting.isEmpty, bytes <= state.free {
            state.free -= bytes
            return true
          }
          state.waiting.append(Waiter(number: number, bytes: bytes, continuation: continuation))
          return false
        }
        if isFree { continuation.resume(returning: true) } else { wakeUp.leave() }
        // The cancellation may have come before the waiter was there.
        if !isFree, Task.isCancelled { cancel(number) }
      }
    } onCancel: {
      cancel(number)
    }
  }

  func release(_ bytes: Int64) {
    let admitted = state.withLock { state in
      state.free += bytes
      return state.admit()
    }
    resume(admitted, returning: true)
  }

  private func cancel(_ number: UInt64) {
    let (cancelled, admitted) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let index = state.waiting.firstIndex(where: { $0.number == number }) else { return (nil, []) }
      let cancelled = state.waiting.remove(at: index)
      // The next one may need less room.
      return (cancelled, state.admit())
    }
    if let cancelled { resume([cancelled], returning: false) }
    resume(admitted, returning: true)
  }

  private func resume(_ waiters: [Waiter], returning isAdmitted: Bool) {
    for waiter in waiters {
      wakeUp.enter()
      waiter.continuation.resume(returning: isAdmitted)
    }
  }
}
