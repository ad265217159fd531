import BlobUpload
import Blobs
import Synchronization

/// What those who send tell the feed: which files are under way, and which come again.
final class WatchInbox: Sendable {
  /// A file that was handed out.
  struct Handed: Sendable {
    let path: BytePath
    /// Below its source.
    let relative: BytePath
    /// The first walk found it.
    let isFirst: Bool
  }

  private struct State {
    var underWay: [BytePath: Handed] = [:]
    var again: [(file: Handed, wait: Duration)] = []
    /// What the server will not have: not offered again by this process.
    var refused = RememberedFiles()
  }
  private let state = Mutex(State())

  func begin(_ file: Handed) { state.withLock { $0.underWay[file.path] = file } }
  func isUnderWay(_ path: BytePath) -> Bool { state.withLock { $0.underWay[path] != nil } }

  /// nil: it was not under way.
  func end(_ item: UploadItem) -> Handed? { state.withLock { $0.underWay.removeValue(forKey: item.identity) } }

  /// Nothing is under way any more.
  func endAll() { state.withLock { $0.underWay = [:] } }

  func again(_ file: Handed, after wait: Duration) { state.withLock { $0.again.append((file, wait)) } }

  func takeAgain() -> [(file: Handed, wait: Duration)] {
    state.withLock { state in
      defer { state.again = [] }
      return state.again
    }
  }

  func refuse(_ item: UploadItem) { state.withLock { _ = $0.refused.insert(item.identity, item.info.validator) } }
  func isRefused(_ path: BytePath, _ stamp: FileStamp) -> Bool {
    state.withLock { $0.refused.contains(path, stamp.validator) }
  }
}

/// Versions of files, of which only so many are remembered.
struct RememberedFiles {
  private static let limit = 16384
  private var hashes: Set<Int> = []

  /// false: it was there. nil: whatever the version.
  @discardableResult
  mutating func insert(_ path: BytePath, _ validator: Validator?) -> Bool {
    if hashes.count >= Self.limit { hashes = [] }
    return hashes.insert(hash(path, validator)).inserted
  }

  func contains(_ path: BytePath, _ validator: Validator?) -> Bool { hashes.contains(hash(path, validator)) }

  private func hash(_ path: BytePath, _ validator: Validator?) -> Int {
    var hasher = Hasher()
    hasher.combine(path)
    hasher.combine(validator)
    return hasher.finalize()
  }
}
