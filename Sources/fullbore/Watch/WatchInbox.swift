import BlobUpload
import Blobs
import Synchronization

/// Messages from the senders to the feed: which files are in progress, and which to offer again.
final class WatchInbox: Sendable {
  /// A file that was returned by the feed.
  struct Handed: Sendable {
    let path: BytePath
    /// The path below its source.
    let relative: BytePath
    /// The first walk has found the file.
    let isFirst: Bool
    /// The length that was counted as found.
    let length: Int64
  }

  private struct State {
    var underWay: [BytePath: Handed] = [:]
    var again: [(file: Handed, wait: Duration)] = []
    /// Versions that the server has refused, which this process does not offer again.
    var refused = RememberedFiles()
    var seeksDeleted = false
  }
  private let state = Mutex(State())
  /// How many files are not at rest yet, so that they are not sent.
  let settling = Atomic(0)

  func begin(_ file: Handed) { state.withLock { $0.underWay[file.path] = file } }
  func isUnderWay(_ path: BytePath) -> Bool { state.withLock { $0.underWay[path] != nil } }

  /// nil if the file was not in progress.
  func end(_ item: UploadItem) -> Handed? { state.withLock { $0.underWay.removeValue(forKey: item.identity) } }

  /// Marks all files as not in progress, and returns those that were.
  func endAll() -> [Handed] {
    state.withLock { state in
      defer { state.underWay = [:] }
      return Array(state.underWay.values)
    }
  }

  /// A file that was returned by the feed could not be opened, so that it became no item. This version is not offered again.
  func endUnopened(_ path: BytePath, _ stamp: FileStamp) {
    state.withLock { state in
      state.underWay[path] = nil
      _ = state.refused.insert(path, stamp.validator)
    }
  }

  func again(_ file: Handed, after wait: Duration) { state.withLock { $0.again.append((file, wait)) } }

  func takeAgain() -> [(file: Handed, wait: Duration)] {
    state.withLock { state in
      defer { state.again = [] }
      return state.again
    }
  }

  /// Files may have been deleted whose uploads are unfinished.
  var seeksDeleted: Bool { state.withLock { $0.seeksDeleted } }
  func seekDeleted() { state.withLock { $0.seeksDeleted = true } }

  /// Whether `seekDeleted` was called since the last call.
  func takeSeeksDeleted() -> Bool {
    state.withLock { state in
      defer { state.seeksDeleted = false }
      return state.seeksDeleted
    }
  }

  func refuse(_ item: UploadItem) { state.withLock { _ = $0.refused.insert(item.identity, item.info.validator) } }
  func isRefused(_ path: BytePath, _ stamp: FileStamp) -> Bool {
    state.withLock { $0.refused.contains(path, stamp.validator) }
  }
}

/// A limited set of file versions.
struct RememberedFiles {
  private static let limit = 16384
  private var hashes: Set<Int> = []

  /// Returns false if the version was already in the set. `validator` nil stands for any version.
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
