import Synchronization

/// Keeps the error that ended the queue; errors that follow from it are not reported.
final class FirstError: Sendable {
  private let first = Mutex<UploadError?>(nil)
  var error: UploadError? { first.withLock { $0 } }
  func keep(_ error: UploadError) { first.withLock { if $0 == nil { $0 = error } } }
}
