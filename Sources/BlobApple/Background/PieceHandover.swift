import Synchronization

/// Hands a piece from the thread that writes it to the task that has reserved its room. The task may be cancelled at any time,
/// and then does not learn of the piece.
final class PieceHandover: Sendable {
  private enum State {
    case isWriting, isAbandoned
    case isWritten(TaskLabel)
  }
  private let state = Mutex(State.isWriting)

  /// Returns false if nobody waits for the piece any more; then the caller deletes it.
  func put(_ piece: TaskLabel) -> Bool {
    state.withLock { state in
      if case .isAbandoned = state { return false }
      state = .isWritten(piece)
      return true
    }
  }

  /// The task does not wait any more. Returns the piece if it was written already; then the caller deletes it.
  func abandon() -> TaskLabel? {
    state.withLock { state in
      defer { state = .isAbandoned }
      if case .isWritten(let piece) = state { return piece }
      return nil
    }
  }
}
