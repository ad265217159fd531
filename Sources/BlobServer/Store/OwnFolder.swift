import Blobs
import Platform

/// The server's own folder, `.fullbore` in the served one, and the lock in it that keeps a second server away.
struct OwnFolder: Sendable {
  let folder: Folder
  /// Files can be renamed from here into folders of the same device only.
  let device: dev_t
  private let lock: Descriptor

  /// Opens the folder, made if it is missing. Throws when another server holds the lock.
  init(in root: Folder, _ path: BytePath) throws(ServerError) {
    let name = ServedPath.storeName
    let made = name.withCString { mkdirat(root.number, $0, 0o700) }
    if made != 0, errno != EEXIST { throw failed("make \(name) in", path.description) }
    let number = name.withCString { openAt(root.number, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
    if number < 0 { throw failed("open", name.description) }
    folder = Folder(Descriptor(number))
    device = try folder.status().st_dev
    if try root.status().st_dev != device {
      throw ServerError(
        "\(name) in \(path) is on another file system than that folder, so that no upload could be moved out of it")
    }
    lock = try folder.open("lock", O_RDWR | O_CREAT)
    if flock(lock.number, LOCK_EX | LOCK_NB) != 0 {
      throw ServerError("the folder \(path) is already served: another server holds its .fullbore/lock")
    }
  }

  func unlock() { flock(lock.number, LOCK_UN) }

  /// Whether it still has its name in `root`.
  func isIn(_ root: Folder) throws(ServerError) -> Bool {
    guard let named = try root.status(ServedPath.storeName) else { return false }
    let own = try folder.status()
    return named.st_dev == own.st_dev && named.st_ino == own.st_ino
  }
}

extension FileStore {
  /// Runs `work` once more where it failed with 404 because someone has removed the server's own folder, which is made
  /// anew for it. The uploads in it are lost. Throws 500 where the folder cannot be made.
  func restoringOwnFolder<Result>(_ work: () throws(ServerError) -> Result) throws(ServerError) -> Result {
    do throws(ServerError) {
      return try work()
    } catch {
      guard error.status == 404 else { throw error }
    }
    do throws(ServerError) {
      try restoreOwnFolder()
      return try work()
    } catch {
      // The client has done nothing wrong, so the status is at least 500.
      throw ServerError(max(500, error.status), "\(ServedPath.storeName) was removed: \(error.message)")
    }
  }

  /// Makes the server's own folder anew if someone has removed it.
  func restoreOwnFolder() throws(ServerError) {
    try own.withLock { (own) throws(ServerError) in
      guard let old = own, try !old.isIn(root) else { return }
      own = try OwnFolder(in: root, path)
      saved.store(0, ordering: .relaxed)
      claims.withLock { $0 = Claims() }
      finished.withLock { $0.removeAll() }
      quota.forgetUploads()
    }
  }
}
