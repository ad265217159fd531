import Blobs
import Platform

/// Sums the sizes of the files in a tree. Neither the stack nor the number of open folders grows with the tree's depth.
struct TreeSize {
  /// A folder on the path to the current one. `..` may only be used to return to it if it is still the parent.
  private struct Level {
    var name: BytePath
    var device: dev_t
    var inode: ino_t
    /// Subfolders still to visit.
    var folders: [BytePath]
  }
  private let root: Folder
  private var current: Folder
  private let cancel: Cancellation
  private var way: [Level] = []
  private var sum: Int128 = 0

  /// The total size in bytes of all files below `root`, except those in its folder `name`. Symbolic links are not
  /// followed. Throws 503 when `cancel` is cancelled.
  static func bytes(
    below root: Folder, without name: BytePath, _ cancel: Cancellation
  ) throws(ServerError) -> Int128 {
    var tree = TreeSize(root: root, current: root, cancel)
    try tree.enter("", without: name)
    while try tree.advance() {}
    return tree.sum
  }

  private init(root: Folder, current: Folder, _ cancel: Cancellation) {
    (self.root, self.current, self.cancel) = (root, current, cancel)
  }

  /// Visits the next folder; returns false after the last.
  private mutating func advance() throws(ServerError) -> Bool {
    if let name = way[way.count - 1].folders.popLast() {
      // If it was deleted or replaced since its parent was read, it is not counted.
      guard let status = try current.status(name), StoredItem(status).isFolder else { return true }
      current = Folder(try current.open(name, O_RDONLY | O_DIRECTORY))
      try enter(name)
      return true
    }
    way.removeLast()
    if way.isEmpty { return false }
    try leave()
    return true
  }

  /// Adds the sizes of the current folder's files and stores the names of its subfolders.
  private mutating func enter(_ name: BytePath, without left: BytePath? = nil) throws(ServerError) {
    let own = try current.status()
    var level = Level(name: name, device: own.st_dev, inode: own.st_ino, folders: [])
    for name in try current.names() where name != left {
      if cancel.isCancelled { throw ServerError(503, "the server is stopping") }
      guard let status = try current.status(name) else { continue }
      if status.isFile { sum += Int128(status.st_size) }
      if StoredItem(status).isFolder { level.folders.append(name) }
    }
    way.append(level)
  }

  private mutating func leave() throws(ServerError) {
    let parent = Folder(try current.open("..", O_RDONLY | O_DIRECTORY))
    let (status, level) = (try parent.status(), way[way.count - 1])
    if status.st_dev == level.device, status.st_ino == level.inode {
      current = parent
      return
    }
    // The folder was moved during the count: descend from the root again.
    current = root
    for level in way.dropFirst() { current = Folder(try current.open(level.name, O_RDONLY | O_DIRECTORY)) }
  }
}
