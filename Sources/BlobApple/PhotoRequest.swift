import Blobs
import Synchronization

/// A request for data that PhotoKit is working on. Its end is reported once, and it can be cancelled before its number is
/// known, since PhotoKit may deliver before `requestData` has returned.
final class PhotoRequest: Sendable {
  /// An object that both handlers of the request own, and nothing else does. PhotoKit may release the handlers without
  /// having called the last one, for example when its connection breaks; then the request has ended as well.
  final class Handlers: Sendable {
    let request: PhotoRequest
    private let operation: String

    /// `operation` is how the message calls the request.
    init(of request: PhotoRequest, _ operation: String) {
      self.request = request
      self.operation = operation
    }

    deinit { request.complete(BlobError(.invalidated, "\(operation): the system gave it up without an answer")) }
  }

  private struct State {
    var number: Int32?
    var isCancelled = false
    /// `whenEnded` was called. PhotoKit may still be delivering.
    var hasReported = false
    /// PhotoKit has finished the request.
    var hasCompleted = false
  }
  private let state = Mutex(State())
  /// `cancelDataRequest` of PhotoKit.
  private let cancelRequest: @Sendable (Int32) -> Void
  private let whenEnded: @Sendable (BlobError?) -> Void

  init(
    cancelling cancelRequest: @escaping @Sendable (Int32) -> Void,
    _ whenEnded: @escaping @Sendable (BlobError?) -> Void
  ) {
    self.cancelRequest = cancelRequest
    self.whenEnded = whenEnded
  }

  func begin(_ number: Int32) {
    let isCancelled = state.withLock { state in
      state.number = number
      return state.isCancelled && !state.hasCompleted
    }
    if isCancelled { cancelRequest(number) }
  }

  func cancel() {
    let number = state.withLock { state -> Int32? in
      defer { state.isCancelled = true }
      return state.isCancelled || state.hasCompleted ? nil : state.number
    }
    if let number { cancelRequest(number) }
  }

  /// Ends the request because its bytes are of no use any more: the asset was changed or deleted.
  func end(because error: BlobError) {
    report(error)
    cancel()
  }

  /// PhotoKit has finished the request.
  func complete(_ error: BlobError?) {
    state.withLock { $0.hasCompleted = true }
    report(error)
  }

  private func report(_ error: BlobError?) {
    let isFirst = state.withLock { state in
      defer { state.hasReported = true }
      return !state.hasReported
    }
    if isFirst { whenEnded(error) }
  }
}
