import Blobs
import Synchronization

/// The last result of the check that the server makes of its folder every second. Reading it needs no disk, so it can be
/// read while the disk does not respond.
final class FolderHealth: Sendable {
  /// The facts that the check of every second finds out about the folder.
  struct Finding: Sendable {
    /// Why the server cannot do its work; nil: it can.
    var problem: String?
    /// How many more bytes can be stored; nil: the system does not tell.
    var free: Int64?
    /// The limit for the bytes of all files, if an upload was refused because of it since the last check.
    var refusingLimit: Int64?
    /// Which of the names of `MonitoringRoutes` something in the folder has.
    var published: Set<BytePath> = []
  }
  private struct State {
    var checked = ContinuousClock.now
    var found = Finding()
    var isFull = false
    /// The free bytes when the operator was told that the limit holds up uploads; nil: there was more room since.
    var freeAtRefusal: Int64?
    /// Names that files got during the check, which may not have seen them.
    var justPublished: Set<BytePath> = []
  }
  private let state = Mutex(State())

  private let patience: Duration

  /// A check that takes longer than `patience` waits for a disk that does not respond.
  init(patience: Duration = .seconds(20)) { self.patience = patience }

  /// Returns a line for the operator when the room has come to its end, or no longer suffices for an upload. It is said again
  /// only after there was room, or when less than half of that room is left.
  @discardableResult func note(_ finding: Finding) -> String? {
    state.withLock { state in
      state.checked = .now
      state.found = finding
      state.found.published.formUnion(state.justPublished)
      state.justPublished = []
      guard let free = finding.free else { return nil }
      let wasFull = state.isFull
      if free < Self.little { state.isFull = true }
      if free > 16 * Self.little { state.isFull = false }
      // An upload that is refused when much less is left is another one than the one that was told of.
      if let refused = state.freeAtRefusal, free > refused || free < refused / 2 { state.freeAtRefusal = nil }
      if state.isFull {
        return wasFull ? nil : "there is no room left: uploads wait until files are deleted or moved away"
      }
      guard let limit = finding.refusingLimit, state.freeAtRefusal == nil else { return nil }
      state.freeAtRefusal = free
      return "uploads wait: all files together may have \(limit) bytes, and the \(free) that are left do not suffice; "
        + "delete files or move them away"
    }
  }

  /// Call when the server has published a file, so that the next request sees it.
  func published(_ path: BytePath) {
    if !MonitoringRoutes.names.contains(path) { return }
    state.withLock { state in
      state.found.published.insert(path)
      state.justPublished.insert(path)
    }
  }

  /// Whether something in the folder may have this name. Other programs' files are noticed within a second.
  func mayHave(_ name: BytePath) -> Bool { state.withLock { $0.found.published.contains(name) } }

  /// A disk keeps some blocks to itself, so nothing more can be stored before the last byte is used.
  private static let little: Int64 = 1 << 20

  /// How many more bytes can be stored; nil: the system does not tell.
  var free: Int64? { state.withLock { $0.found.free } }

  /// Why the server cannot do its work; nil: it can.
  var problem: String? { stall ?? state.withLock { $0.found.problem } }

  /// Set if the disk does not respond: nothing should be asked of it.
  var stall: String? {
    let pause = ContinuousClock.now - state.withLock { $0.checked }
    return pause < patience ? nil : "the served folder has not responded for \(pause.components.seconds) s"
  }
}
