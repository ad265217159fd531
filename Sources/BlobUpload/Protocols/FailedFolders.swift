import BlobHTTP
import Synchronization

/// The folders into which a server has answered 500 to a PUT.
///
/// nginx does so where the folder is missing. Other servers mean a failure that passes, so a folder is looked for only after
/// the second such response.
final class FailedFolders: Sendable {
  private let paths = Mutex<Set<String>>([])
  /// Beyond this number of folders all are forgotten, and the second response of each counts as its first one.
  private static let most = 1000

  /// Notes a response 500. Returns whether it is not the first one of the folder.
  func note(_ folder: HTTPURL) -> Bool {
    paths.withLock { paths in
      if paths.count >= Self.most { paths = [] }
      return !paths.insert(folder.path).inserted
    }
  }
}

extension UploadContext {
  /// The topmost missing folder among `folder` and those above it; nil: none is known to be missing. A server that takes
  /// uploads only and shows nothing may answer 404 for every folder, which proves nothing. A failed question counts as no
  /// answer.
  func missingFolder(_ folder: HTTPURL) async -> HTTPURL? {
    var missing: HTTPURL?
    var next: HTTPURL? = folder
    while let asked = next {
      guard (try? await remoteLength(of: asked, expecting: nil)) == .missing else { return missing }
      (missing, next) = (asked, asked.above)
    }
    return nil
  }
}
