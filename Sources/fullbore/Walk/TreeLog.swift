import Blobs
import Synchronization

/// The results, the position and the pending folders of a walk, accessible while the walking thread hangs.
final class TreeLog: Sendable {
  struct State {
    var events: [TreeEvent] = []
    var place: BytePath = ""
    var rootsLeft = 0
    var pending: [PendingFolders] = []
    var isAbandoned = false
  }
  private let state = Mutex(State())

  func append(_ event: TreeEvent) { state.withLock { $0.events.append(event) } }

  func enter(_ place: BytePath, rootsLeft: Int) {
    state.withLock { ($0.place, $0.rootsLeft) = (place, rootsLeft) }
  }

  func take() -> [TreeEvent] {
    state.withLock { state in
      defer { state.events = [] }
      return state.events
    }
  }

  func add(_ folders: PendingFolders) { state.withLock { $0.pending.append(folders) } }

  /// Removes and returns the folder to enter next.
  func takeFolder() -> (path: BytePath, relative: BytePath)? {
    state.withLock { state in
      guard let last = state.pending.indices.last else { return nil }
      let name = state.pending[last].names.popLast()
      let parent = state.pending[last]
      if state.pending[last].names.isEmpty { state.pending.removeLast() }
      return (parent.path.appending(name), parent.relative.appending(name))
    }
  }

  var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

  /// Returns the state and clears it, so that the hanging thread finds nothing to do when it returns.
  func abandon() -> State {
    state.withLock { state in
      defer { state = State(isAbandoned: true) }
      return state
    }
  }
}
