import BlobUpload
import Blobs
import Synchronization

/// A result that is set once, and for which any number of tasks wait.
final class OneTimeResult<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, UploadError>?
    var waiting: [CheckedContinuation<Result<Value, UploadError>, Never>] = []
  }
  private let state = Mutex(State())

  func set(_ result: Result<Value, UploadError>) {
    let waiting = state.withLock { state in
      state.result = result
      defer { state.waiting = [] }
      return state.waiting
    }
    for waiter in waiting { waiter.resume(returning: result) }
  }

  func value() async throws(UploadError) -> Value {
    let result = await withCheckedContinuation { continuation in
      let result = state.withLock { state in
        if state.result == nil { state.waiting.append(continuation) }
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
