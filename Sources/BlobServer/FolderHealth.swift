import Synchronization

/// The last result of the check that the server makes of its folder every second. Reading it needs no disk, so it can be
/// read while the disk does not respond.
final class FolderHealth: Sendable {
  private struct State {
    var checked = ContinuousClock.now
    var problem: String?
    var free: Int64?
    var isFull = false
  }
  private let state = Mutex(State())

  private let patience: Duration

  /// A check that takes longer than `patience` waits for a disk that does not respond.
  init(patience: Duration = .seconds(20)) { self.patience = patience }

  /// Returns a line for the operator when the room has come to its end. It is said again only after there was room.
  @discardableResult func note(_ problem: String?, free: Int64?) -> String? {
    state.withLock { state in
      let wasFull = state.isFull
      state = State(problem: problem, free: free, isFull: wasFull)
      guard let free else { return nil }
      if free < Self.little { state.isFull = true }
      if free > 16 * Self.little { state.isFull = false }
      return state.isFull && !wasFull
        ? "there is no room left: uploads wait until files are deleted or moved away" : nil
    }
  }

  /// A disk keeps some blocks to itself, so nothing more can be stored before the last byte is used.
  private static let little: Int64 = 1 << 20

  /// How many more bytes can be stored; nil: the system does not tell.
  var free: Int64? { state.withLock { $0.free } }

  /// Why the server cannot do its work; nil: it can.
  var problem: String? { stall ?? state.withLock { $0.problem } }

  /// Set if the disk does not respond: nothing should be asked of it.
  var stall: String? {
    let pause = ContinuousClock.now - state.withLock { $0.checked }
    return pause < patience ? nil : "the served folder has not responded for \(pause.components.seconds) s"
  }
}
