import Synchronization

/// The offset up to which the bytes of an upload have left that carry no checksum. The transport's thread advances it.
final class SentOffset: Sendable {
  /// A struct and no tuple: each access to a closure in a generic tuple would wrap it once more.
  private struct State {
    var end: Int64 = 0
    var record: (@Sendable (Int64, [UInt8]) -> Void)?
  }
  private let state = Mutex(State())

  func begin(at offset: Int64, _ record: @escaping @Sendable (Int64, [UInt8]) -> Void) {
    state.withLock { $0 = State(end: offset, record: record) }
  }

  func end() { state.withLock { $0.record = nil } }

  func advance(by count: Int64) {
    state.withLock { state in
      state.end += count
      if count > 0 { state.record?(state.end, SentRange.noValue) }
    }
  }
}

/// The newest session of an upload. The transport's thread sets it when an interim answer names one.
final class OpenedSession: Sendable {
  private let session = Mutex<UploadSession?>(nil)
  func withLock<Result: Sendable>(_ body: (inout UploadSession?) -> Result) -> Result { session.withLock { body(&$0) } }
}
