import Blobs
import Platform
import Synchronization

/// The folder that a store serves, with its subfolder `.fullbore`.
///
/// The store keeps the folder that it has opened. If another program moves that folder, the store follows it, until there is
/// another folder at its path.
final class ServedFolder: Sendable {
  let path: BytePath
  /// The served folder, as it was when it was opened last.
  private let opened: Mutex<Folder>
  /// The folder `.fullbore`; nil: the store is read-only.
  private let own: Mutex<StateFolder?>
  /// Why the folder at `path` is not the one that is served, as the operator was told; nil: it is.
  private let trouble = Mutex<String?>(nil)

  /// Opens `folder`, which must exist. A second store for the same folder is refused, unless this one is `readOnly`.
  init(_ folder: BytePath, readOnly: Bool) throws(ServerError) {
    path = folder
    let root = try Folder(folder)
    opened = Mutex(root)
    own = try Mutex(readOnly ? nil : StateFolder(in: root, folder))
  }

  var root: Folder { opened.withLock { $0 } }

  /// The folder `.fullbore`; nil: the store is read-only.
  var store: Folder? { own.withLock { $0?.folder } }

  /// The folder of unfinished uploads; throws 403 for a read-only server.
  func uploads() throws(ServerError) -> Folder {
    guard let store else { throw ServerError(403, "the server is read-only", kind: .readOnly) }
    return store
  }

  /// Which folder `.fullbore` is; nil: the store is read-only.
  var ownIdentity: FileIdentity? { own.withLock { $0?.identity } }

  /// Files can be moved from `.fullbore` only into folders of this device; nil: the store is read-only.
  var device: dev_t? { own.withLock { $0?.device } }

  /// The present time by the clock of the file system. See `StateFolder.now`.
  var now: Int64 { own.withLock { $0?.now } ?? wallClock() }

  func unlock() { own.withLock { $0?.unlock() } }

  /// The folder at `path`. Throws 403 for the server's own folder.
  func folder(_ path: ServedPath, creating: Bool = false) throws(ServerError) -> Folder {
    try refuseOwnFolder(path)
    return try root.folder(path, creating: creating)
  }

  /// Throws 403 for a path in the server's own folder. `ServedPath` refuses its name, but some file systems find it under
  /// other names too, as FAT under `FULLBO~1`.
  func refuseOwnFolder(_ path: ServedPath) throws(ServerError) {
    guard let first = path.components.first, let named = try root.status(first) else { return }
    var own = ownIdentity
    // A read-only server has not opened it.
    if own == nil { own = try root.status(ServedPath.storeName).map { FileIdentity($0) } }
    if FileIdentity(named) == own {
      throw ServerError(403, "\(path) is kept for unfinished uploads", kind: .reservedName)
    }
  }

  func item(at path: ServedPath) throws(ServerError) -> StoredItem? {
    if path.isRoot {
      return StoredItem(isFolder: true, length: 0, modified: 0, modifiedSeconds: 0, changed: 0, inode: 0)
    }
    do throws(ServerError) {
      let folder = try folder(path.parent)
      guard let status = try folder.status(path.name) else { return nil }
      return try Self.item(status, path, in: folder)
    } catch {
      if error.status == 404 { return nil }
      throw error
    }
  }

  /// The file or folder `path` with its stamp. `status`: of `path`, whose folder is `folder`.
  static func item(_ status: stat, _ path: ServedPath, in folder: Folder) throws(ServerError) -> StoredItem {
    var item = try item(status, path)
    item.stamp = VersionStamp(status, of: path.name, in: folder)
    return item
  }

  static func item(_ status: stat, _ path: ServedPath) throws(ServerError) -> StoredItem {
    let item = StoredItem(status)
    if item.isFolder || status.isFile { return item }
    throw ServerError(403, "\(path) is neither a file nor a folder; symbolic links are not followed")
  }

  func open(_ path: ServedPath) throws(ServerError) -> OpenItem {
    if path.isRoot { throw ServerError(409, "/ is a folder") }
    let file = try folder(path.parent).open(path.name, O_RDONLY, as: path)
    var status = stat()
    if fstat(file.number, &status) != 0 { throw failed("look at", path.description) }
    var item = try Self.item(status, path)
    if item.isFolder { throw ServerError(409, "\(path) is a folder") }
    item.stamp = VersionStamp(status, of: file)
    return OpenItem(item: item, content: .file(file))
  }

  /// Does not tell where the folder is, because whoever asks for `/healthz` may read it.
  var problem: String? { foundProblem.map { $0.replacing("\(path)", with: "the served folder") } }

  private var foundProblem: String? {
    if let trouble = trouble.withLock({ $0 }) { return trouble }
    guard let store else { return nil }  // a read-only server does not write
    for folder in [root, store] {
      if folder.isDeleted { return "\(path) was deleted" }
      if let reason = folder.problemOfWriting() {
        return "\(path) cannot be written: \(String(cString: strerror(reason)))"
      }
    }
    return root.free == 0 ? "the disk of \(path) is full" : nil
  }

  /// Creates `.fullbore` again if somebody has removed it, after `forget`, since the uploads in it are lost.
  func restoreOwn(_ forget: () -> Void) throws(ServerError) {
    try own.withLock { (own) throws(ServerError) in
      guard let old = own, try !old.isIn(root) else { return }
      own = try StateFolder(in: root, path)
      forget()
    }
  }

  /// Uses the folder that is at `path` now, if it is another one. `takeUp` gets its subfolder `.fullbore`, with the names in
  /// it. Returns lines for the operator, and whether it is another folder.
  func lookAgain(_ takeUp: ([BytePath], Folder) -> [String]) -> (notices: [String], isAnother: Bool) {
    let now: Folder
    do throws(ServerError) {
      now = try Folder(path)
      if FileIdentity(try now.status()) == FileIdentity(try root.status()) { return (backAtItsPath(), false) }
    } catch {
      return (tell("\(path) cannot be opened any more: \(error.message)"), false)
    }
    do throws(ServerError) {
      return (try serve(now, takeUp), true)
    } catch {
      return (tell("\(path) is another folder now, which cannot be served: \(error.message)"), false)
    }
  }

  private func serve(_ now: Folder, _ takeUp: ([BytePath], Folder) -> [String]) throws(ServerError) -> [String] {
    var found = ["\(path) is another folder now: it is served from here on, and unfinished uploads start again"]
    try own.withLock { (own) throws(ServerError) in
      if own != nil {
        let fresh = try StateFolder(in: now, path)
        found += takeUp(try fresh.folder.names(), fresh.folder)
        own = fresh
      }
      opened.withLock { $0 = now }
    }
    trouble.withLock { $0 = nil }
    return found
  }

  /// Each reason is told once, until another one takes its place.
  private func tell(_ reason: String) -> [String] {
    let isNew = trouble.withLock { trouble in
      defer { trouble = reason }
      return trouble != reason
    }
    if !isNew { return [] }
    let isDeleted = root.isDeleted
    return [
      reason
        + (isDeleted
          ? "; the folder that was served was deleted, and requests fail until there is another one"
          : "; the server goes on in the folder that was there, wherever it is now")
    ]
  }

  private func backAtItsPath() -> [String] {
    let wasAway = trouble.withLock { trouble in
      defer { trouble = nil }
      return trouble != nil
    }
    return wasAway ? ["the served folder is at its path again: \(path)"] : []
  }
}
