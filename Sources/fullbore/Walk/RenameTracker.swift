import Blobs
import Platform

/// Recently found files by device and inode. A file is sent once, under the name it had when it was found, even if it
/// is renamed before it is read.
///
/// To find renamed files, all sources are walked, once for all pending files. Only the latest files are remembered,
/// many more than are waiting.
final class RenameTracker: Sendable {
  fileprivate struct Number: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  fileprivate struct Promise {
    let path: BytePath
    let size: Int64
    let modified: Int64
    /// The path where the file was seen last, if it differs.
    var moved: BytePath?
    /// A search has not found the file.
    var isGone = false

    /// Whether both are the same version of a file under different names, as far as is known.
    func isLike(_ other: Promise) -> Bool {
      path != other.path && size == other.size && modified == other.modified
    }
  }

  fileprivate struct State {
    var promises: [Number: Promise] = [:]
    /// File numbers in order of arrival. When there are `most`, the one at index `next` is the oldest.
    var order: [Number] = []
    var next = 0
    var isSearched = false
    /// When the next search may begin.
    var due = Duration.zero
  }

  private let most: Int
  private let state = Monitor(State())
  private let roots: [BytePath]
  private let options: TreeOptions

  /// `most`: the number of files that are remembered.
  init(_ roots: [BytePath], _ options: TreeOptions, most: Int = 2048) {
    self.most = most
    self.roots = roots
    self.options = options
  }

  /// Records a file that was found. Returns false if it was found before and has been renamed since; it is then sent
  /// under its old name.
  func take(_ item: TreeItem) -> Bool {
    guard item.stamp.volume?.keepsNumbers == true else { return true }
    let number = Number(item.stamp)
    let promise = Promise(path: item.path, size: item.stamp.size, modified: item.stamp.modified)
    let known: Promise? = state.update(waking: .none) { state in
      if let known = state.promises[number], item.isOnlyName, known.isLike(promise) { return known }
      state.add(promise, number, most: most)
      return nil
    }
    guard let known else { return true }
    if number.isAt(known.path) {
      state.update(waking: .none) { $0.add(promise, number, most: most) }
      return true
    }
    state.update { $0.promises[number]?.moved = item.path }
    return false
  }

  /// The current path of a file that is not at its old path; nil if it is not among the sources. Blocks while the
  /// sources are walked, and between two walks.
  func place(of stamp: FileStamp, _ cancel: Cancellation) throws(BlobError) -> BytePath? {
    let number = Number(stamp)
    while true {
      // The file system is accessed without the lock: a disk that does not respond must not block the walk.
      guard let promise = state.update(waking: .none, { $0.promises[number] }), !promise.isGone else { return nil }
      // The file was moved back.
      if number.isAt(promise.path) { return promise.path }
      if let moved = promise.moved, number.isAt(moved) { return moved }
      if try !beginSearch(cancel) { continue }
      defer {
        state.update { $0.isSearched = false }
      }
      try search(cancel)
    }
  }

  /// True if this thread must search. False if another thread has searched and this one has waited for it.
  private func beginSearch(_ cancel: Cancellation) throws(BlobError) -> Bool {
    try cancel.whileWaiting(wakeUp: { self.state.update { _ in } }) { () throws(BlobError) in
      var hasWaited = false
      return try state.wait { state throws(BlobError) -> Bool? in
        try cancel.check("look for a file that was moved")
        if state.isSearched {
          hasWaited = true
          return nil
        }
        if hasWaited { return false }
        state.isSearched = true
        return true
      }
    }
  }

  private func search(_ cancel: Cancellation) throws(BlobError) {
    let clock = MonotonicClock()
    let due = state.update(waking: .none) { $0.due }
    if due > clock.now { try clock.sleep(due - clock.now, cancel, "look for a file that was moved") }
    let start = clock.now
    let wanted = state.update(waking: .none) { state in Set(state.promises.keys) }
    var seen: [Number: BytePath] = [:]
    let tree = FileTree(roots, options)
    while case let events = tree.next(max: PushWalk.batch), !events.isEmpty {
      try cancel.check("look for a file that was moved")
      for case .file(let item) in events where wanted.contains(Number(item.stamp)) {
        seen[Number(item.stamp)] = item.path
      }
    }
    state.update { state in
      for number in wanted {
        guard let promise = state.promises[number] else { continue }
        state.promises[number]!.isGone = seen[number] == nil
        if let place = seen[number], place != promise.path { state.promises[number]!.moved = place }
      }
      // Limits searches to a fifth of the time, however many files are deleted.
      state.due = clock.now + (clock.now - start) * 4
    }
  }
}

extension RenameTracker.Number {
  fileprivate init(_ stamp: FileStamp) { self.init(device: stamp.device, inode: stamp.inode) }

  fileprivate func isAt(_ path: BytePath) -> Bool {
    var status = stat()
    guard path.status(&status) == 0 else { return false }
    return self == Self(FileStamp(status))
  }
}

extension RenameTracker.State {
  fileprivate mutating func add(_ promise: RenameTracker.Promise, _ number: RenameTracker.Number, most: Int) {
    let isNew = promises.updateValue(promise, forKey: number) == nil
    if !isNew { return }
    if order.count < most { return order.append(number) }
    promises[order[next]] = nil
    order[next] = number
    next = (next + 1) % most
  }
}
