import BlobHTTP
import Synchronization

/// The unfinished uploads of this process at one server, to notice a URL that stands for two of them.
///
/// A server that has forgotten its uploads, such as one that numbers them and was restarted, may give the URL of an
/// unfinished upload to the next one. Parts of two files would then be stored as one file.
final class OpenUploads: Sendable {
  private struct State {
    /// The name of the file for each upload URL, as in `UploadSession.names`.
    var open: [String: String] = [:]
    /// URLs that the server has given to two uploads. Neither of the two uploads may be continued.
    var ambiguous: Set<String> = []
  }
  private let state = Mutex(State())

  /// Notes an upload that has this URL. Throws with recovery `.restart` if another one has it as well.
  func note(_ session: UploadSession) throws(UploadError) {
    guard let url = session.state["url"] else { return }
    let names = session.names ?? ""
    let isAmbiguous = state.withLock { state in
      if let known = state.open.updateValue(names, forKey: url), known != names { state.ambiguous.insert(url) }
      return state.ambiguous.contains(url)
    }
    if isAmbiguous {
      throw UploadError(
        .restart, .destination, "\(url): the server has given this URL to two uploads: it has forgotten the first one")
    }
  }

  /// The upload has ended, or the server does not know it any more.
  func end(_ session: UploadSession) {
    guard let url = session.state["url"] else { return }
    state.withLock { _ = $0.open.removeValue(forKey: url) }
  }
}
