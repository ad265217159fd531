import Synchronization

/// What a server is asked about a destination while files already go there: most are answered with yes.
///
/// Whoever is refused meanwhile waits for the answer, since that may tell why, for all of them at once.
package final class OpenQuestion: Sendable {
  private struct State {
    /// Asked, and not answered yet.
    var isOpen = false
    /// It was answered with no; those who wait may not have been told yet.
    var isRefused = false
    var waiting: [CheckedContinuation<Bool, Never>] = []
  }
  private let state = Mutex(State())
  private let question: @Sendable () async throws(UploadError) -> Void

  init(_ question: @escaping @Sendable () async throws(UploadError) -> Void) { self.question = question }

  /// From now on the answer is waited for; `ask` must follow.
  func open() { state.withLock { $0 = State(isOpen: true) } }

  /// Asks, once. `refused` hears of it before those who wait.
  func ask(_ refused: (UploadError) -> Void) async {
    do throws(UploadError) { try await question() } catch {
      state.withLock { $0.isRefused = true }
      refused(error)
    }
    let end = state.withLock { state in
      defer { (state.isOpen, state.waiting) = (false, []) }
      return state
    }
    for waiter in end.waiting { waiter.resume(returning: end.isRefused) }
  }

  /// The question is still open, or was answered with no.
  var mayBeRefused: Bool { state.withLock { $0.isOpen || $0.isRefused } }

  /// Returns once it is not open any more. Waiting is not cancelled: who asks is, and answers then.
  /// Throws where the answer was no; it has been told.
  func answered() async throws(UploadError) {
    let isRefused = await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Bool? in
        if !state.isOpen { return state.isRefused }
        state.waiting.append(continuation)
        return nil
      }
      if let known { continuation.resume(returning: known) }
    }
    if isRefused { throw UploadError(.giveUp, .cancelled, "the server has refused all") }
  }
}
