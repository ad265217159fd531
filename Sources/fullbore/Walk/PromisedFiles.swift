import Blobs
import Platform

/// The files that a walk found lately, by who they are: one is sent once, under the name it had when it was found,
/// wherever it is moved before it is read.
///
/// Where it is now is asked of the sources as a whole, and each time for all that were promised. Only the latest files
/// are remembered, many more than wait for their turn.
final class PromisedFiles: Sendable {
  fileprivate struct Number: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  fileprivate struct Promise {
    let path: BytePath
    let size: Int64
    let modified: Int64
    /// Where it was seen last, if elsewhere.
    var moved: BytePath?
    /// It was looked for, and is not to be found.
    var isGone = false

    /// The same version of a file, by all that is known, under another name.
    func isLike(_ other: Promise) -> Bool {
      path != other.path && size == other.size && modified == other.modified
    }
  }

  fileprivate struct State {
    var promises: [Number: Promise] = [:]
    /// In the order of their coming; once there are `most`, the place at `next` is the oldest one's.
    var order: [Number] = []
    var next = 0
    var isSearched = false
    /// When it may be searched again.
    var due = Duration.zero
  }

  private static let most = 2048
  private let state = Monitor(State())
  private let roots: [BytePath]
  private let options: TreeOptions

  init(_ roots: [BytePath], _ options: TreeOptions) {
    self.roots = roots
    self.options = options
  }

  /// A file was found. False: it was found before, and has been renamed since; it is promised under the old name.
  func take(_ item: TreeItem) -> Bool {
    guard item.stamp.volume?.keepsNumbers == true else { return true }
    let number = Number(item.stamp)
    let promise = Promise(path: item.path, size: item.stamp.size, modified: item.stamp.modified)
    let known: Promise? = state.update(waking: .none) { state in
      if let known = state.promises[number], item.isOnlyName, known.isLike(promise) { return known }
      state.add(promise, number, most: Self.most)
      return nil
    }
    guard let known else { return true }
    if number.isAt(known.path) {
      state.update(waking: .none) { $0.add(promise, number, most: Self.most) }
      return true
    }
    state.update { $0.promises[number]?.moved = item.path }
    return false
  }

  /// Where a promised file is, which is not where it was; nil: nowhere among the sources. Blocks, for as long as a walk
  /// over them takes, and the times between two of these.
  func place(of stamp: FileStamp, _ cancel: Cancellation) throws(BlobError) -> BytePath? {
    let number = Number(stamp)
    while true {
      // The file system is asked without the lock: a disk that does not answer must not hold up the walk.
      guard let promise = state.update(waking: .none, { $0.promises[number] }), !promise.isGone else { return nil }
      // It was moved back.
      if number.isAt(promise.path) { return promise.path }
      if let moved = promise.moved, number.isAt(moved) { return moved }
      if try !beginSearch(cancel) { continue }
      defer {
        state.update { $0.isSearched = false }
      }
      try search(cancel)
    }
  }

  /// True: this thread is the one that has to search. False: another thread did, and this one has waited for its end.
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
      // No more than a fifth of the time goes into it, however much is deleted.
      state.due = clock.now + (clock.now - start) * 4
    }
  }
}

extension PromisedFiles.Number {
  fileprivate init(_ stamp: FileStamp) { self.init(device: stamp.device, inode: stamp.inode) }

  fileprivate func isAt(_ path: BytePath) -> Bool {
    var status = stat()
    guard path.status(&status) == 0 else { return false }
    return self == Self(FileStamp(status))
  }
}

extension PromisedFiles.State {
  fileprivate mutating func add(_ promise: PromisedFiles.Promise, _ number: PromisedFiles.Number, most: Int) {
    let isNew = promises.updateValue(promise, forKey: number) == nil
    if !isNew { return }
    if order.count < most { return order.append(number) }
    promises[order[next]] = nil
    order[next] = number
    next = (next + 1) % most
  }
}
