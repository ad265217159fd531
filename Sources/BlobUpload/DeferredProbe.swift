import Synchronization

/// A query about the whole destination that runs while files are already being sent, because most servers answer it
/// with yes.
///
/// An upload that is refused meanwhile waits for the response, because it may explain the refusal for all uploads at
/// once.
package final class DeferredProbe: Sendable {
  private struct State {
    /// The query was started, and there is no response yet.
    var isOpen = false
    /// The response was no. Waiting tasks may not have been resumed yet.
    var isRefused = false
    var waiting: [CheckedContinuation<Bool, Never>] = []
  }
  private let state = Mutex(State())
  private let question: @Sendable () async throws(UploadError) -> Void

  init(_ question: @escaping @Sendable () async throws(UploadError) -> Void) { self.question = question }

  /// Marks the query as pending, so that `answered` waits; the caller must then call `ask`.
  func open() { state.withLock { $0 = State(isOpen: true) } }

  /// Sends the query, once. Calls `refused` with an error before waiting tasks resume.
  func ask(_ refused: (UploadError) -> Void) async {
    do throws(UploadError) { try await question() } catch {
      state.withLock { $0.isRefused = true }
      refused(error)
    }
    let end = state.withLock { state in
      defer { (state.isOpen, state.waiting) = (false, []) }
      return state
    }
    for waiter in end.waiting { waiter.resume(returning: end.isRefused) }
  }

  /// Waits until the query is no longer pending. Waiting ignores cancellation, since the query itself is cancelled and
  /// then ends.
  /// Throws if the response was no; `refused` has already been called with the reason.
  func answered() async throws(UploadError) {
    let isRefused = await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Bool? in
        if !state.isOpen { return state.isRefused }
        state.waiting.append(continuation)
        return nil
      }
      if let known { continuation.resume(returning: known) }
    }
    if isRefused { throw UploadError(.giveUp, .cancelled, "the server has refused all") }
  }
}
