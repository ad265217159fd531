import BlobUpload
import Blobs
import Platform
import Synchronization

/// A file that was found, and its path at the destination.
struct TreeItem: Sendable, Hashable {
  /// The absolute path.
  let path: BytePath
  /// The path below the destination.
  let relative: BytePath
  let stamp: FileStamp
  /// The file was found under its only name: it is no symbolic link and has no other hard links.
  var isOnlyName = false
}

enum TreeEvent: Sendable {
  case file(TreeItem)
  /// An object that cannot be sent, such as a socket or a link to a folder, with the reason.
  case skipped(BytePath, reason: String)
  /// A file or folder that could not be read. The walk continues.
  case failed(BytePath, message: String)
  /// Something that the user should know, and that is no failure.
  case noticed(String)
}

struct TreeOptions: Sendable, Hashable {
  /// Includes names that begin with a dot. Sources named by the user are always included.
  var includesHidden = false
  var filter = GlobFilter()
  /// The files of one photo are listed one after the other, its main file first, in folders of up to so many names, because
  /// they are sent together and may get the same number. nil: they are listed as other files are.
  var mostPhotos: Int?
  /// A larger folder is listed in the order of the file system, since its names would need much memory.
  static let mostPhotos = 32_768
  /// The `ascmhl` folder of a source is left out, because the push writes one at the destination.
  var leavesOutHistories = false
  /// The journal in use; nil if there is none.
  var journal: JournalFiles?
  /// For files that an interrupted `push --delete-after-verify` has renamed.
  var setAside = SetAsideName.Rule.passOver

  /// Whether a file or folder is left out because of its name.
  func passesOver(_ relative: BytePath, _ name: BytePath, isFolder: Bool) -> Bool {
    isHidden(name) || filter.excludes(relative, name, isFolder: isFolder)
  }

  /// Whether a folder has the hash lists of a source. `folder`: where it is, below the destination.
  func isHistory(_ name: BytePath, in folder: BytePath) -> Bool {
    leavesOutHistories && name == HashListChain.folder && (folder.isEmpty || filter.sourceNames.contains(folder))
  }

  /// Whether a file or folder is left out because its name begins with a dot.
  func isHidden(_ name: BytePath) -> Bool { name.bytes.first == UInt8(ascii: ".") && !includesHidden }
}

/// Walks files and folders in the given order, and returns the results in batches.
///
/// `DIR` arrives as `DIR/…`; `DIR/` and `.` send their contents. Links to files are followed. Links to folders are not,
/// so loops cannot occur. Only one folder is open at a time, however deep the tree is. Memory holds only its first
/// names and the names of pending folders.
final class FileTree: Sendable {
  /// Folders with up to this many names are sorted by name; larger ones are listed in the order of the file system.
  /// `TreeOptions.mostPhotos` takes the place of this limit.
  static let sortedLimit = 4096

  private let walk: Mutex<TreeWalk>
  private let log = TreeLog()
  private let roots: [BytePath]
  private let options: TreeOptions
  private let tally: FilterStatistics
  private let entering: @Sendable (BytePath, BytePath) -> Void

  /// `entering` is called for every folder, with its path at the destination, before the folder is opened.
  init(
    _ roots: [BytePath], _ options: TreeOptions = TreeOptions(), counting tally: FilterStatistics = FilterStatistics(),
    entering: @escaping @Sendable (BytePath, BytePath) -> Void = { _, _ in }
  ) {
    let order = options.mostPhotos == nil ? nil : PhotoPlace.order(of: roots.count) { PhotoPlace(roots[$0]) }
    let roots = order?.map { roots[$0] } ?? roots
    (self.roots, self.options, self.tally, self.entering) = (roots, options, tally, entering)
    walk = Mutex(TreeWalk(roots, options, tally, entering, log))
  }

  /// Walks one folder within a tree. `folder` is absolute, and is not entered if it has been replaced by a link.
  convenience init(
    in folder: BytePath, as relative: BytePath, _ options: TreeOptions,
    entering: @escaping @Sendable (BytePath, BytePath) -> Void
  ) {
    self.init([], options, entering: entering)
    walk.withLock { $0.begin(in: folder, as: relative) }
  }

  /// The next events, at most `max`; empty at the end. Blocks on the file system, so call it on a thread that may
  /// block. `noteProgress` is called for every name.
  func next(max: Int, noteProgress: @Sendable () -> Void = {}) -> [TreeEvent] {
    walk.withLock { walk in
      var count = 0
      while count < max, let event = walk.next(noteProgress) {
        log.append(event)
        count += 1
      }
    }
    return log.take()
  }

  /// Use this if a call of `next` hangs. Returns the events found so far, the folder or file at which it hangs, and a
  /// new walk over the remaining folders and roots. This walk must not be used afterwards.
  func abandon() -> (events: [TreeEvent], place: BytePath, rest: FileTree) {
    let left = log.abandon()
    let rest = FileTree(roots.suffix(left.rootsLeft), options, counting: tally, entering: entering)
    for folders in left.pending { rest.log.add(folders) }
    return (left.events, left.place, rest)
  }
}

/// The state of a walk: remaining roots and the open folder. Pending folders are in the log.
private struct TreeWalk {
  private let options: TreeOptions
  private let tally: FilterStatistics
  private let entering: @Sendable (BytePath, BytePath) -> Void
  private let log: TreeLog
  private var roots: [BytePath]
  private var open: OpenFolder?
  /// The current root, until something is found in it that can be sent, is excluded by a pattern, or fails.
  private var emptyRoot: BytePath?
  /// Files of the journal in use were left out of the current root.
  private var emptyRootHasJournal = false

  init(
    _ roots: [BytePath], _ options: TreeOptions, _ tally: FilterStatistics,
    _ entering: @escaping @Sendable (BytePath, BytePath) -> Void, _ log: TreeLog
  ) {
    self.log = log
    self.tally = tally
    self.roots = roots.reversed()
    self.options = options
    self.entering = entering
  }

  mutating func begin(in folder: BytePath, as relative: BytePath) {
    var names = NameList()
    names.append(folder.name)
    let parents = [folder, relative].map { BytePath($0.bytes.dropLast(folder.name.bytes.count)) }
    log.add(PendingFolders(path: parents[0], relative: parents[1], names: names))
  }

  mutating func next(_ noteProgress: @Sendable () -> Void) -> TreeEvent? {
    while true {
      noteProgress()
      if let event = nextInFolder(noteProgress) ?? enterNextFolder() { return counted(event) }
      if open != nil { continue }
      if log.isAbandoned { return nil }
      if let root = emptyRoot { tally.foundNothing(root, emptyRootHasJournal) }
      (emptyRoot, emptyRootHasJournal) = (nil, false)
      guard let root = roots.popLast() else { return nil }
      emptyRoot = root.absolute()
      if let event = take(root) { return counted(event) }
    }
  }

  private mutating func counted(_ event: TreeEvent) -> TreeEvent {
    switch event {
    case .skipped, .noticed: break
    case .file, .failed: emptyRoot = nil
    }
    return event
  }

  /// Handles a source given by the user. It arrives under its own name, unless its path ends in a slash or a dot.
  private mutating func take(_ root: BytePath) -> TreeEvent? {
    let path = root.absolute()
    log.enter(path, rootsLeft: roots.count)
    if !root.hasTrailingSlash, let event = SetAsideName.Found.atRoot(&roots, root, options.setAside) {
      emptyRoot = nil
      return event
    }
    var status = stat()
    if root.isEmpty || path.status(&status) != 0 {
      let number = root.isEmpty ? ENOENT : errno
      if !root.isEmpty, isLink(path), isLeftOut(root.name, root.name) { return nil }
      return .failed(path, message: reason(number))
    }
    let isFolder = status.st_mode & S_IFMT == S_IFDIR
    let relative = isFolder && root.sendsContents ? BytePath("") : root.name
    if isFolder { return enter(path, relative, follow: true) }
    if isLeftOut(relative, relative) { return nil }
    if options.journal?.contains(status) == true {
      return .failed(path, message: "\(JournalFiles.reason); to send it, give this push another one by --journal FILE")
    }
    let event = event(path, relative, status)
    // Within a folder such objects are skipped. A source named by the user must not be left out silently.
    guard case .skipped(_, let reason) = event else { return event }
    return .failed(path, message: "it is \(reason), and no file or folder; '-' sends what comes through standard input")
  }

  private mutating func enterNextFolder() -> TreeEvent? {
    guard open == nil, let folder = log.takeFolder() else { return nil }
    return enter(folder.path, folder.relative, follow: false)
  }

  private mutating func enter(_ path: BytePath, _ relative: BytePath, follow: Bool) -> TreeEvent? {
    log.enter(path, rootsLeft: roots.count)
    entering(path, relative)
    let event = options.setAside == .giveBack ? SetAsideName.Found.allBack(in: path) : nil
    guard let folder = OpenFolder(path, relative, follow: follow, mostPhotos: options.mostPhotos) else {
      return .failed(path, message: "the folder cannot be opened: \(reason(errno))")
    }
    open = folder
    return event
  }

  private mutating func nextInFolder(_ noteProgress: @Sendable () -> Void) -> TreeEvent? {
    guard let folder = open else { return nil }
    while let name = folder.nextName() {
      noteProgress()
      if let event = look(at: name, in: folder) { return event }
    }
    open = nil
    if !folder.subfolders.isEmpty {
      log.add(PendingFolders(path: folder.path, relative: folder.relative, names: folder.subfolders.reversed()))
    }
    if folder.error == 0 { return nil }
    return .failed(folder.path, message: "the folder cannot be read to its end: \(reason(folder.error))")
  }

  private mutating func look(at name: BytePath, in folder: OpenFolder) -> TreeEvent? {
    if name == SetAsideName.folder { return SetAsideName.Found.folder(in: folder.path, options.setAside) }
    if let found = SetAsideName.Found(name, in: folder.path, options.setAside) {
      folder.next = found.hadBothNames ? nil : found.original
      return found.event
    }
    let relative = folder.relative.appending(name)
    if tally.excludes(relative, name, options.filter) {
      emptyRoot = nil
      return nil
    }
    let path = folder.path.appending(name)
    if options.isHidden(name) {
      tally.foundHidden(path)
      return nil
    }
    var status = stat()
    if folder.look(at: name, &status, follow: false) != 0 { return .failed(path, message: reason(errno)) }
    let isLink = status.st_mode & S_IFMT == S_IFLNK
    let targetError = isLink && folder.look(at: name, &status, follow: true) != 0 ? errno : 0
    if targetError == 0, status.st_mode & S_IFMT == S_IFDIR {
      if isLink { return .skipped(path, reason: "a symbolic link to a folder") }
      if tally.excludes(relative, name, isFolder: true, options.filter) {
        emptyRoot = nil
        return nil
      }
      if options.isHistory(name, in: folder.relative) {
        return .skipped(path, reason: "the hash lists of the source, of which --mhl sends none as a file")
      }
      folder.subfolders.append(name)
      return nil
    }
    // A dangling link is no failure if a file of its name would not be sent.
    if !tally.includes(relative, name, options.filter) {
      emptyRoot = nil
      return nil
    }
    if targetError != 0 {
      return .failed(path, message: "a symbolic link that leads nowhere: \(reason(targetError))")
    }
    if let journal = options.journal, journal.contains(name, in: folder.path) || isLink && journal.contains(status) {
      emptyRootHasJournal = true
      return .skipped(path, reason: JournalFiles.reason)
    }
    return event(path, relative, status, isOnlyName: !isLink && status.st_nlink == 1)
  }

  /// Whether a pattern excludes an object that is not a folder.
  private mutating func isLeftOut(_ relative: BytePath, _ name: BytePath) -> Bool {
    if !tally.excludes(relative, name, options.filter), tally.includes(relative, name, options.filter) { return false }
    emptyRoot = nil
    return true
  }

  private func isLink(_ path: BytePath) -> Bool {
    var status = stat()
    return path.withCString { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  private func event(
    _ path: BytePath, _ relative: BytePath, _ status: stat, isOnlyName: Bool = false
  ) -> TreeEvent {
    switch FileKind(mode: status.st_mode) {
    case .file:
      .file(TreeItem(path: path, relative: relative, stamp: FileStamp(status, at: path), isOnlyName: isOnlyName))
    case let other: .skipped(path, reason: other.rawValue)
    }
  }

  private func reason(_ number: Int32) -> String { String(cString: strerror(number)) }
}
