import Blobs
import Platform

/// The server's own folder, `.fullbore` in the served folder, and its lock file, which excludes a second server.
struct StateFolder: Sendable {
  let folder: Folder
  /// Files can be renamed from this folder only into folders of the same device.
  let device: dev_t
  let identity: FileIdentity
  private let lock: Descriptor

  /// Opens the folder, and creates it if it does not exist. Throws if another server holds the lock.
  init(in root: Folder, _ path: BytePath) throws(ServerError) {
    let name = ServedPath.storeName
    let made = name.withCString { mkdirat(root.number, $0, 0o700) }
    if made != 0, errno != EEXIST { throw failed("make \(name) in", path.description) }
    let number = name.withCString { openAt(root.number, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
    if number < 0 { throw failed("open", name.description) }
    folder = Folder(Descriptor(number), isOwn: true)
    let status = try folder.status()
    device = status.st_dev
    identity = FileIdentity(status)
    if try root.status().st_dev != device {
      throw ServerError(
        "\(name) in \(path) is on another file system than that folder, so that no upload could be moved out of it")
    }
    lock = try folder.open("lock", O_RDWR | O_CREAT)
    if flock(lock.number, LOCK_EX | LOCK_NB) != 0 {
      throw ServerError("the folder \(path) is already served: another server holds its .fullbore/lock")
    }
  }

  /// The present time by the clock that gives the files their times, in nanoseconds since 1970. All ages of files are
  /// differences of its times: the clock of a file system in the network may differ from this computer's by more than an
  /// upload is kept. Where the file system takes no time now, as after a failure, this computer's clock is asked.
  var now: Int64 {
    var status = stat()
    return futimens(lock.number, nil) == 0 && fstat(lock.number, &status) == 0 ? status.modified : wallClock()
  }

  func unlock() { flock(lock.number, LOCK_UN) }

  /// Whether the name in `root` still refers to this folder.
  func isIn(_ root: Folder) throws(ServerError) -> Bool {
    guard let named = try root.status(ServedPath.storeName) else { return false }
    return FileIdentity(named) == identity
  }
}

/// The time of a file as this computer's clock shows it, for clients. `now`: the present time by the clock of its file system.
package func shown(_ time: Int64, at now: Int64) -> Int64 { wallClock().addingClamped(time.subtractingClamped(now)) }
