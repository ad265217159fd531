import Blobs

/// The walks of a watch, and when the next one begins.
struct WatchWalks {
  typealias Instant = ContinuousClock.Instant

  struct Walk {
    let tree: FileTree
    /// The walk covers everything, not only one new folder.
    let isWhole: Bool
    /// Errors are reported, which happens only in the first walk and for new folders.
    let tells: Bool
  }

  /// The interval of complete walks if not every folder and link can be watched.
  let interval: Duration
  private(set) var current: Walk?
  private var newFolders: [WatchedFolders.Place] = []
  /// When to walk everything again; nil: only when there is a reason.
  private(set) var due: Instant? = .now
  /// Everything was walked once.
  private(set) var hasListed = false
  private var hasToldListed = false

  private static let mostNewFolders = 4096

  init(interval: Duration) { self.interval = interval }

  /// Returns false if there are too many new folders to walk each of them.
  mutating func add(_ folder: WatchedFolders.Place) -> Bool {
    newFolders.append(folder)
    return newFolders.count <= Self.mostNewFolders
  }

  /// Everything is walked again, at the latest after `wait`.
  mutating func repeatAll(after wait: Duration = .zero) { due = min(due ?? .now + wait, .now + wait) }

  /// Everything is walked again, new folders too.
  mutating func replaceAll(after wait: Duration) {
    newFolders = []
    repeatAll(after: wait)
  }

  /// Whether it is time to walk everything.
  mutating func takeDue() -> Bool {
    guard let due, due <= .now else { return false }
    self.due = nil
    newFolders = []
    return true
  }

  mutating func takeNewFolder() -> WatchedFolders.Place? { newFolders.popLast() }

  mutating func begin(_ tree: FileTree, isWhole: Bool) {
    current = Walk(tree: tree, isWhole: isWhole, tells: !isWhole || !hasListed)
  }

  /// Returns whether everything was walked for the first time.
  mutating func end() -> Bool {
    let isFirst = current?.isWhole == true && !hasListed
    current = nil
    if isFirst { hasListed = true }
    return isFirst
  }

  /// Whether everything was walked once. True only once.
  mutating func takeListed() -> Bool {
    defer { hasToldListed = hasListed }
    return hasListed && !hasToldListed
  }
}
