import Synchronization

/// What a server is asked about a destination while files already go there: most are answered with yes.
///
/// Whoever is refused meanwhile waits for the answer, since that may tell why, for all of them at once.
package final class OpenQuestion: Sendable {
  private enum State {
    /// Nobody has asked it, or it was answered with yes.
    case quiet
    case asked([CheckedContinuation<Bool, Never>])
    /// Those who wait are not told yet.
    case refusing([CheckedContinuation<Bool, Never>])
    case refused

    var waiting: [CheckedContinuation<Bool, Never>] {
      switch self {
      case .asked(let waiting), .refusing(let waiting): waiting
      case .quiet, .refused: []
      }
    }
  }
  private let state = Mutex(State.quiet)
  private let question: @Sendable () async throws(UploadError) -> Void

  init(_ question: @escaping @Sendable () async throws(UploadError) -> Void) { self.question = question }

  /// From now on the answer is waited for; `ask` must follow.
  func open() { state.withLock { $0 = .asked([]) } }

  /// Asks, once. `refused` hears of it before those who wait.
  func ask(_ refused: (UploadError) -> Void) async {
    var isRefused = false
    do throws(UploadError) { try await question() } catch {
      isRefused = true
      state.withLock { $0 = .refusing($0.waiting) }
      refused(error)
    }
    let waiting = state.withLock { state in
      defer { state = isRefused ? .refused : .quiet }
      return state.waiting
    }
    for waiter in waiting { waiter.resume(returning: isRefused) }
  }

  /// It was answered with no.
  var isRefused: Bool {
    state.withLock { state in
      switch state {
      case .refusing, .refused: true
      case .quiet, .asked: false
      }
    }
  }

  /// Returns once it is not open any more. Waiting is not cancelled: who asks is, and answers then.
  /// Throws where the answer was no; it has been told.
  func answered() async throws(UploadError) {
    let isRefused = await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Bool? in
        switch state {
        case .quiet: return false
        case .refused: return true
        case .asked(let waiting): state = .asked(waiting + [continuation])
        case .refusing(let waiting): state = .refusing(waiting + [continuation])
        }
        return nil
      }
      if let known { continuation.resume(returning: known) }
    }
    if isRefused { throw UploadError(.giveUp, .cancelled, "the server has refused all") }
  }
}
