import Synchronization

/// Counts the saved uploads that are not finished, and knows those of earlier runs that nobody has continued.
final class SavedUploads: Sendable {
  private struct State {
    var count = 0
    var untouched: Set<UploadID> = []
  }
  private let state = Mutex(State())

  var count: Int { state.withLock { $0.count } }
  /// How many were begun or continued in this run.
  var touchedCount: Int { state.withLock { $0.count - $0.untouched.count } }

  func begin() { state.withLock { $0.count += 1 } }

  /// Adds an upload that an earlier run has left.
  func takeUp(_ id: UploadID) {
    state.withLock { state in
      state.count += 1
      state.untouched.insert(id)
    }
  }

  /// A client sends bytes for the upload.
  func touch(_ id: UploadID) { state.withLock { _ = $0.untouched.remove(id) } }

  /// The upload is finished, or gone.
  func end(_ id: UploadID) {
    state.withLock { state in
      state.count -= 1
      state.untouched.remove(id)
    }
  }

  func removeAll() { state.withLock { $0 = State() } }
}
