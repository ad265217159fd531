import Synchronization

/// What a server is asked about a destination while files already go there: most are answered with yes.
///
/// Whoever is refused meanwhile waits for the answer, since that may tell why, for all of them at once.
package final class OpenQuestion: Sendable {
  private enum State {
    /// Nobody has asked it, or it was answered with yes.
    case quiet
    case asked([CheckedContinuation<Bool, Never>])
    case refused
  }
  private let state = Mutex(State.quiet)
  private let question: @Sendable () async throws(UploadError) -> Void

  init(_ question: @escaping @Sendable () async throws(UploadError) -> Void) { self.question = question }

  /// Asks, once. `refused` hears of it before those who wait.
  func ask(_ refused: (UploadError) -> Void) async {
    state.withLock { $0 = .asked([]) }
    var isRefused = false
    do throws(UploadError) { try await question() } catch {
      isRefused = true
      refused(error)
    }
    let waiting = state.withLock { state -> [CheckedContinuation<Bool, Never>] in
      defer { state = isRefused ? .refused : .quiet }
      if case .asked(let waiting) = state { return waiting }
      return []
    }
    for waiter in waiting { waiter.resume(returning: isRefused) }
  }

  /// Returns once it is not open any more. Waiting is not cancelled: who asks is, and answers then.
  /// Throws where the answer was no; it has been told.
  func answered() async throws(UploadError) {
    let isRefused = await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Bool? in
        switch state {
        case .quiet: return false
        case .refused: return true
        case .asked(let waiting):
          state = .asked(waiting + [continuation])
          return nil
        }
      }
      if let known { continuation.resume(returning: known) }
    }
    if isRefused { throw UploadError(.giveUp, .cancelled, "the server has refused all") }
  }
}
