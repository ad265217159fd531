import BlobUpload
import Blobs
import Synchronization

/// The result of work that must succeed once, and for which any number of tasks wait. After a failure it is tried again.
final class OneTimeResult<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, UploadError>?
    /// An attempt is under way.
    var isRunning = false
    var waiting: [CheckedContinuation<Result<Value, UploadError>, Never>] = []
  }
  private let state = Mutex(State())

  /// Returns whether the caller must make an attempt now, and call `set` with its result.
  func begin() -> Bool {
    state.withLock { state in
      if case .success? = state.result { return false }
      defer { state.isRunning = true }
      return !state.isRunning
    }
  }

  /// The failure of the last attempt; nil: there was none, or the next one is under way.
  var failure: UploadError? {
    state.withLock { state in
      guard !state.isRunning, case .failure(let error)? = state.result else { return nil }
      return error
    }
  }

  func set(_ result: Result<Value, UploadError>) {
    let waiting = state.withLock { state in
      state.result = result
      state.isRunning = false
      defer { state.waiting = [] }
      return state.waiting
    }
    for waiter in waiting { waiter.resume(returning: result) }
  }

  /// Waits for the end of an attempt that is under way.
  func value() async throws(UploadError) -> Value {
    let result = await withCheckedContinuation { continuation in
      let result = state.withLock { state in
        if state.isRunning || state.result == nil {
          state.waiting.append(continuation)
          return nil as Result<Value, UploadError>?
        }
        return state.result
      }
      if let result { continuation.resume(returning: result) }
    }
    return try result.get()
  }
}

/// A completion handler of UIKit, which is called on the main actor.
@MainActor final class MainActorHandler {
  private let handler: () -> Void
  init(_ handler: @escaping () -> Void) { self.handler = handler }
  func call() { handler() }
}

extension JournalClaim {
  /// The entries that the claim has claimed.
  var ids: [Int64] {
    switch self {
    case .fresh(let id): [id]
    case .replaced(let id, let old): id == old.id ? [id] : [id, old.id]
    case .resume(let entry), .unsure(let entry), .done(let entry): [entry.id]
    case .busy: []
    }
  }
}

extension UploadItem {
  /// Identifies the upload in the labels of its tasks.
  var key: String { TaskLabel.upload(of: identity, to: intent().target, recipient: intent().recipient) }
}
