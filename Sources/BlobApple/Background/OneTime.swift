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

/// A feed of one item.
final class OneTimeFeed: Sendable {
  private let item: Mutex<UploadItem?>
  init(_ item: UploadItem) { self.item = Mutex(item) }
  func next() -> [UploadItem]? { item.withLock { $0.take() }.map { [$0] } }
}

/// Receives the result of one upload.
final class BackgroundObserver: UploadObserver {
  private let outcome = Mutex<UploadOutcome?>(nil)
  private let begin: @Sendable (UploadProgress) -> Void

  init(_ begin: @escaping @Sendable (UploadProgress) -> Void) { self.begin = begin }

  func started(_ item: UploadItem, _ progress: UploadProgress) { begin(progress) }
  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    self.outcome.withLock { $0 = outcome }
  }

  func end() throws(UploadError) -> BackgroundUpload.State {
    switch outcome.withLock({ $0 }) {
    case .sent(let result, _): return .finished(result)
    case .doneBefore: return .finished(nil)
    case .failed(let error): throw error
    case .busy(let pid):
      throw UploadError(.retry(after: nil), .file, "process \(pid) is sending it just now")
    case nil: throw UploadError(.giveUp, .cancelled, "interrupted")
    }
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
