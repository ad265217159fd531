import Blobs
import Synchronization

/// An upload that was not finished when the server ended.
public struct UnfinishedUpload: Sendable, Hashable {
  /// The path that the file was to get, below the served folder.
  public let path: BytePath
  /// The bytes that have arrived.
  public let received: Int64
  /// The length of the whole file in bytes; nil: it is not known.
  public let length: Int64?
  /// Whether the received bytes are kept, so that the upload goes on when the folder is served again. false: its protocol
  /// has no way to go on, so the file must be sent from the beginning.
  public let isKept: Bool

  package init(path: BytePath, received: Int64, length: Int64?, isKept: Bool) {
    (self.path, self.received, self.length, self.isKept) = (path, received, length, isKept)
  }
}

/// Notes uploads whose bytes are lost because the server ends.
final class LostUploads: Sendable {
  private struct State {
    var isNoting = false
    var uploads: [UnfinishedUpload] = []
  }
  private let state = Mutex(State())
  private static let most = 10_000

  /// Notes all uploads that fail from now on.
  func begin() { state.withLock { $0.isNoting = true } }

  func note(_ path: ServedPath, received: Int64, length: Int64?) {
    state.withLock { state in
      guard state.isNoting, state.uploads.count < Self.most else { return }
      state.uploads.append(
        UnfinishedUpload(path: BytePath(path.bytes), received: received, length: length, isKept: false))
    }
  }

  var all: [UnfinishedUpload] { state.withLock { $0.uploads } }
}

/// Notes files and archives that were being sent when the server ended.
final class CutDownloads: Sendable {
  private let paths = Mutex<Set<BytePath>>([])
  private static let most = 1000

  /// `target`: of the request.
  func note(_ target: [UInt8]) {
    guard let target = try? RequestTarget(target), let (path, isFolder) = try? ServedPath.fromURL(target.path) else {
      return
    }
    let name = BytePath(path.bytes + (isFolder ? [UInt8(ascii: "/")] : []))
    paths.withLock { if $0.count < Self.most { $0.insert(name) } }
  }

  var all: [BytePath] { paths.withLock { $0.sorted() } }
}

extension UploadRecord {
  /// The target. Of a part, the path of the file that its metadata names: a part usually names the file, although its own
  /// name is never published.
  var namedTarget: ServedPath {
    guard isPart, let values = try? Tus.metadata(metadata), let name = TusTarget.name(values) else { return target }
    return (try? target.parent.appending(name)) ?? target
  }
}
