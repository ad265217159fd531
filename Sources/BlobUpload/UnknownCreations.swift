import BlobHTTP
import Blobs

/// Counts uploads that a server created and does not know a moment later, for example because a proxy in front of it
/// rewrites paths. Each new try would leave one more upload on the server.
struct UnknownCreations {
  private var count = 0
  /// An upload was created, and no request for it has been sent yet.
  private var isUntouched = false

  mutating func noteCreation() { isUntouched = true }
  /// A request for the upload had any result except 404.
  mutating func noteAnswer() { isUntouched = false }

  /// Whether `error`, which ends a session, is the second such failure.
  mutating func isOneTooMany(_ error: UploadError) -> Bool {
    guard isUntouched, error.status == 404 else { return false }
    isUntouched = false
    count += 1
    return count > 1
  }

  func complaint(_ error: UploadError, _ session: UploadSession?) -> UploadError {
    var error = error.final
    error.message =
      "\(error.message). The server has created an upload twice and does not know it under the Location that it told"
      + (session?.state["url"].flatMap { HTTPURL($0) }.map { ", \($0)" } ?? "")
      + ". Does a proxy in front of the server rewrite paths, or tell it none?"
    return error
  }
}
