import Synchronization

/// The offset up to which the bytes of an upload have left that carry no checksum, in any of its requests. The transport's
/// thread advances it.
final class SentOffset: Sendable {
  /// A struct and no tuple: each access to a closure in a generic tuple would wrap it once more.
  private struct State {
    /// Of the request under way.
    var end: Int64 = 0
    /// Of all requests: the server may still get what an earlier one has handed over.
    var furthest: Int64 = 0
    var record: (@Sendable (Int64, [UInt8]) -> Void)?

    mutating func note() {
      furthest = max(furthest, end)
      if furthest > 0 { record?(furthest, SentRange.noValue) }
    }
  }
  private let state = Mutex(State())

  /// The next bytes to leave are those from `offset` on.
  func begin(at offset: Int64, _ record: @escaping @Sendable (Int64, [UInt8]) -> Void) {
    state.withLock { ($0.end, $0.record) = (offset, record) }
  }

  /// As `begin`, for a request under way that has handed over `count` bytes from the first on, and was not noted yet.
  func noteBegun(_ count: Int64, _ record: @escaping @Sendable (Int64, [UInt8]) -> Void) {
    state.withLock { state in
      if state.record != nil { return }
      (state.end, state.record) = (count, record)
      state.note()
    }
  }

  /// The upload is gone.
  func end() { state.withLock { $0 = State() } }

  func advance(by count: Int64) {
    state.withLock { state in
      state.end += count
      if count > 0 { state.note() }
    }
  }
}

/// The newest session of an upload. The transport's thread sets it when an interim answer names one.
final class OpenedSession: Sendable {
  private let session = Mutex<UploadSession?>(nil)
  func withLock<Result: Sendable>(_ body: (inout UploadSession?) -> Result) -> Result { session.withLock { body(&$0) } }
}
