import BlobHTTP
import Blobs
import Synchronization

/// The failures of a reader of a file at a destination, after which it waits as an upload does: by the retry policy, and for
/// long in an outage.
final class FailedReads: ReadFailures {
  private let uploader: Uploader
  private let url: HTTPURL
  private let count = Mutex(FailureCount())

  init(_ uploader: Uploader, _ url: HTTPURL) { (self.uploader, self.url) = (uploader, url) }

  func reset() { count.withLock { $0 = FailureCount() } }

  func wait(after error: BlobError, _ cancel: Cancellation, _ what: String) throws(BlobError) {
    let ended = Monitor<Result<Void, BlobError>?>(nil)
    // The reader blocks its thread until this task has ended.
    let waiting = Task { [self] in
      let result = await wait(after: error, what)
      ended.update { $0 = result }
    }
    defer { waiting.cancel() }
    let result: Result<Void, BlobError> = try cancel.whileWaiting(wakeUp: { ended.update { _ in } }) {
      () throws(BlobError) in
      try ended.wait { result throws(BlobError) in
        try cancel.check(what)
        return result
      }
    }
    try result.get()
  }

  private func wait(after error: BlobError, _ what: String) async -> Result<Void, BlobError> {
    var failures = count.withLock { $0 }
    defer { count.withLock { $0 = failures } }
    do throws(UploadError) {
      try await uploader.wait(after: UploadError(reading: url, error), &failures, what)
      return .success(())
    } catch {
      return .failure(BlobError(error.side == .cancelled ? .cancelled : .io, error.message, cause: error))
    }
  }
}

extension UploadError {
  /// The error of a request for a file, as that of an upload would be.
  fileprivate init(reading url: HTTPURL, _ error: BlobError) {
    if let refused = error.cause as? RefusedRead {
      self.init(HTTPRequest("GET", url), refused.response)
    } else if let cause = error.cause as? TransportError {
      self.init(cause)
    } else {
      self.init(.resync, .file, error.message, cause: error)
    }
  }
}
