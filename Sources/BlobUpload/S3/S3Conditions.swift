import Synchronization

/// Whether a server honours `If-None-Match: *` on a PUT. A server that ignores it replaces the object with that name.
///
/// Until a server is known to honour it, each name is first checked with HEAD. It becomes known from a 412 for a name
/// that then turns out to exist, and from a trial: an object that this push has just stored is sent again with the
/// condition. A server that honours the condition responds 412; another one stores the same bytes again, so the trial
/// endangers no other object. Amazon honours it and is not tested.
///
/// The trial costs a second body, and each HEAD a round trip. An object is sent twice only when the HEAD requests so
/// far have cost as much. So a push of one object never sends it twice, and a push of many costs at most twice as much
/// as the cheaper way.
final class S3Conditions: Sendable {
  private struct State {
    var questions: Int64 = 0
    var isTrying = false
    /// A trial has shown that the server ignores the condition, or that this cannot be found out.
    var isSettled = false
  }
  /// A round trip takes about as long as sending this many bytes.
  private static let bytesPerQuestion: Int64 = 64 << 10

  private let heeded = Atomic(false)
  private let state = Mutex(State())
  /// If names cannot be checked, one request at a time tests the server with an object of its own.
  let gate = Gate(1)

  /// The server is known to honour the condition.
  var areHeeded: Bool { heeded.load(ordering: .relaxed) }

  func noteHeeded() { heeded.store(true, ordering: .relaxed) }

  /// A name is checked with HEAD.
  func noteQuestion() { state.withLock { $0.questions += 1 } }

  /// Whether an object with this many bytes is to be sent twice. If true, `endTrial` must follow.
  func beginTrial(with bytes: Int64) -> Bool {
    state.withLock { state in
      // The HEAD request for this object does not count, because it was needed anyway.
      let worth = (state.questions - 1).multipliedClamped(by: Self.bytesPerQuestion)
      if areHeeded || state.isTrying || state.isSettled || bytes > worth || state.questions < 2 { return false }
      state.isTrying = true
      return true
    }
  }

  /// `isHeeded` nil: the trial had no result, and the next object may be tried.
  func endTrial(_ isHeeded: Bool?) {
    if isHeeded == true { noteHeeded() }
    state.withLock { ($0.isTrying, $0.isSettled) = (false, isHeeded != nil) }
  }
}
