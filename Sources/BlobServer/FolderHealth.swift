import Synchronization

/// The last result of the check that the server makes of its folder every second. Reading it needs no disk, so it can be
/// read while the disk does not respond.
final class FolderHealth: Sendable {
  private struct State {
    var checked = ContinuousClock.now
    var problem: String?
    var free: Int64?
  }
  private let state = Mutex(State())

  private let patience: Duration

  /// A check that takes longer than `patience` waits for a disk that does not respond.
  init(patience: Duration = .seconds(20)) { self.patience = patience }

  func note(_ problem: String?, free: Int64?) {
    state.withLock { $0 = State(problem: problem, free: free) }
  }

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
