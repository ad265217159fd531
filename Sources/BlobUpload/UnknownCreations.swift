import BlobHTTP
import Blobs

/// Counts uploads that a server has created and does not know a moment later, as when a proxy in front of it rewrites paths.
/// Each new try would leave one more of them there.
struct UnknownCreations {
  private var count = 0
  /// An upload was created, and no request has been made for it yet.
  private var isUntouched = false

  mutating func noteCreation() { isUntouched = true }
  /// Anything but a 404 has come of a request for the upload.
  mutating func noteAnswer() { isUntouched = false }

  /// Whether `error`, which ends a session, is the second one of the kind.
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
