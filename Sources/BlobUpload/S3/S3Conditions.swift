import Synchronization

/// Whether a server heeds `If-None-Match: *` on a PUT. One that ignores it replaces the object that has the name.
///
/// Until a server is known to heed it, each name is asked for first (HEAD). It becomes known by a 412 for a name that is then
/// found to be taken, and by a trial: an object that this push has just stored is sent once more, with the condition. A server
/// that heeds it answers 412, and one that does not has the same bytes again, so the trial puts no other object at risk. Amazon
/// heeds it and is not tried.
///
/// The trial costs a second body, and each HEAD a round trip. An object is sent twice only once the HEADs that were paid for
/// have cost as much, so a push of one object never is, and a push of many pays at most twice what the cheaper way costs.
final class S3Conditions: Sendable {
  private struct State {
    var questions: Int64 = 0
    var isTrying = false
    /// A trial has shown that the server ignores the condition, or does not let us find out.
    var isSettled = false
  }
  /// A round trip takes about as long as so many bytes of a body.
  private static let bytesPerQuestion: Int64 = 64 << 10

  private let heeded = Atomic(false)
  private let state = Mutex(State())
  /// One request at a time finds out by an object of its own where names cannot be asked for.
  let gate = Gate(1)

  /// The server was seen to heed the condition.
  var areHeeded: Bool { heeded.load(ordering: .relaxed) }

  func noteHeeded() { heeded.store(true, ordering: .relaxed) }

  /// A name is asked for.
  func noteQuestion() { state.withLock { $0.questions += 1 } }

  /// Whether an object of so many bytes is to be sent twice. `endTrial` must follow then.
  func beginTrial(with bytes: Int64) -> Bool {
    state.withLock { state in
      // The question about this very object has not been of use yet.
      let worth = (state.questions - 1).multipliedClamped(by: Self.bytesPerQuestion)
      if areHeeded || state.isTrying || state.isSettled || bytes > worth || state.questions < 2 { return false }
      state.isTrying = true
      return true
    }
  }

  /// `isHeeded` nil: nothing was found out, and the next object may be tried.
  func endTrial(_ isHeeded: Bool?) {
    if isHeeded == true { noteHeeded() }
    state.withLock { ($0.isTrying, $0.isSettled) = (false, isHeeded != nil) }
  }
}
