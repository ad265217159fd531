import Synchronization

/// Hands a piece from the thread that writes it to the task that has reserved its room. The task may be cancelled at any time,
/// and then does not learn of the piece. A thread that is still writing keeps the room, because it has the file.
final class PieceHandover: Sendable {
  private enum State {
    case isWaiting, isWriting, isAbandoned
    /// nil: nothing was written.
    case hasEnded(TaskLabel?)
  }
  private let state = Mutex(State.isWaiting)

  /// The thread begins. Returns false if the task does not wait any more; then nothing must be written.
  func begin() -> Bool {
    state.withLock { state in
      if case .isAbandoned = state { return false }
      state = .isWriting
      return true
    }
  }

  /// The thread has written the piece; nil: it has failed and left nothing. Returns false if the task does not wait any
  /// more; then the caller deletes the piece and releases the room.
  func end(_ piece: TaskLabel?) -> Bool {
    state.withLock { state in
      if case .isAbandoned = state { return false }
      state = .hasEnded(piece)
      return true
    }
  }

  enum Rest {
    /// The thread still writes, and releases the room.
    case isWriting
    /// The caller deletes the piece, if there is one, and releases the room.
    case ended(TaskLabel?)
  }

  /// The task does not wait any more.
  func abandon() -> Rest {
    state.withLock { state in
      defer { state = .isAbandoned }
      return switch state {
      case .isWriting: .isWriting
      case .hasEnded(let piece): .ended(piece)
      case .isWaiting, .isAbandoned: .ended(nil)
      }
    }
  }
}
