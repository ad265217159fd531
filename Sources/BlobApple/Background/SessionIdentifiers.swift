import BlobUpload
import Synchronization

/// The identifiers of the background sessions that a process has made. A second session with the identifier of another one
/// has no defined behavior. The system gives no way to wait for the end of a session without the end of its tasks, so
/// an identifier stays in use as long as the process lives.
final class SessionIdentifiers: Sendable {
  static let ofProcess = SessionIdentifiers()
  private let used = Mutex<Set<String>>([])

  func has(_ identifier: String) -> Bool { used.withLock { $0.contains(identifier) } }

  func use(_ identifier: String) throws(UploadError) {
    if used.withLock({ $0.insert(identifier).inserted }) { return }
    throw UploadError(
      .giveUp, .destination,
      "background session \"\(identifier)\": this process has made an uploader for it already, and there may be one only. "
        + "Keep that one and use it again; another user needs another identifier")
  }
}
