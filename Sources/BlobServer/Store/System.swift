import Blobs
import Platform

/// Owns a file descriptor.
package final class Descriptor: Sendable {
  package let number: Int32
  package init(_ number: Int32) { self.number = number }
  deinit { close(number) }

  /// Writes all bytes at the beginning of the file. Returns false, with `errno`, if the file does not take all of them:
  /// a write that stores only some of its bytes does not set `errno`.
  func writeAll(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = pwrite(number, bytes.baseAddress! + done, bytes.count - done, off_t(done))
      if count < 0, errno == EINTR { continue }
      if count == 0 { errno = ENOSPC }
      if count <= 0 { return false }
      done += count
    }
    return true
  }
}

/// An open folder; paths below it are resolved without leaving it.
struct Folder: Sendable {
  let descriptor: Descriptor
  /// Whether this is the server's own folder. Clients do not name its files, so no failure there is a client's mistake.
  let isOwn: Bool
  var number: Int32 { descriptor.number }

  /// Opens the folder at any path, as given by the user.
  init(_ path: BytePath) throws(ServerError) {
    let number = path.withCString { openAt(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    if number < 0 { throw BlobServer.failed("open the folder", path.description) }
    descriptor = Descriptor(number)
    isOwn = false
  }

  init(_ descriptor: Descriptor, isOwn: Bool = false) { (self.descriptor, self.isOwn) = (descriptor, isOwn) }

  /// Converts `errno` to an error. For the server's own files, the status is at least 500: the client may try again, and
  /// its upload does not end.
  func failed(_ operation: String, _ what: String) -> ServerError {
    var error = BlobServer.failed(operation, what)
    if isOwn { error.status = max(500, error.status) }
    return error
  }

  /// The folder at `path` below this one. Throws 404 if it does not exist, 403 if a component is a symbolic link, 409
  /// if a component is a file. `creating`: missing folders are created and synced.
  func folder(_ path: ServedPath, creating: Bool = false) throws(ServerError) -> Folder {
    if path.isRoot { return self }
    do throws(ServerError) {
      return try beneath(BytePath(path.bytes), path)
    } catch {
      guard creating, error.status == 404 else { throw error }
    }
    var place = self
    for name in path.components { place = try place.child(name, on: path) }
    return place
  }

  /// Like `folder`, for an existing folder; nil if it is on another mount, as far as the system reports that. Files
  /// cannot be renamed across mounts, even on the same device.
  func folder(onSameMount path: ServedPath) throws(ServerError) -> Folder? {
    if path.isRoot { return self }
    let number = BytePath(path.bytes).withCString {
      openBeneath(self.number, $0, O_RDONLY | O_DIRECTORY, staysOnMount: true)
    }
    if number >= 0 { return Folder(Descriptor(number)) }
    if errno == EXDEV { return nil }
    throw failed("open the folder", path.description)
  }

  /// The subfolder `name`, which is created and synced if it does not exist. `path` is for messages.
  private func child(_ name: BytePath, on path: ServedPath) throws(ServerError) -> Folder {
    do throws(ServerError) {
      return try beneath(name, path)
    } catch {
      guard error.status == 404 else { throw error }
    }
    let made = name.withCString { mkdirat(number, $0, 0o777) }
    if made != 0, errno != EEXIST { throw failed("make the folder", path.description) }
    if made == 0 { try sync(path.description) }
    return try beneath(name, path)
  }

  private func beneath(_ relative: BytePath, _ path: ServedPath) throws(ServerError) -> Folder {
    let number = relative.withCString { openBeneath(self.number, $0, O_RDONLY | O_DIRECTORY) }
    if number < 0 { throw failed("open the folder", path.description) }
    return Folder(Descriptor(number))
  }

  /// Opens a file in this folder; a symbolic link causes 403. O_NONBLOCK keeps it from blocking on a pipe that has
  /// replaced the file.
  /// `place`: the path of the file in messages; nil: its name.
  func open(_ name: BytePath, _ flags: Int32, as place: ServedPath? = nil) throws(ServerError) -> Descriptor {
    let flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let number = name.withCString { openAt(self.number, $0, flags, 0o666) }
    if number >= 0 { return Descriptor(number) }
    let shown = place?.description ?? name.description
    var error = failed("open", shown)
    // The kernel has asked the holder to give the lease up, which takes milliseconds with most programs.
    if error.systemError == EAGAIN { error.message = "open \(shown): another program holds a lease on it" }
    throw error
  }

  /// nil if nothing exists at `name`.
  func status(_ name: BytePath) throws(ServerError) -> stat? {
    var status = stat()
    if name.withCString({ fstatat(number, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 { return status }
    if errno == ENOENT { return nil }
    throw failed("look at", name.description)
  }

  /// If the status cannot be read, every request reports that.
  var isDeleted: Bool { (try? status())?.st_nlink == 0 }

  /// How many more bytes can be stored on its disk; nil: the system does not tell.
  var free: Int64? {
    var status = statvfs()
    if fstatvfs(number, &status) != 0 { return nil }
    return Int64(clamping: UInt128(status.f_bavail) * UInt128(status.f_frsize))
  }

  /// The status of the folder itself.
  func status() throws(ServerError) -> stat {
    var status = stat()
    if fstat(number, &status) != 0 { throw failed("look at", "an open folder") }
    return status
  }

  /// Returns false if the file could not be removed.
  @discardableResult func unlink(_ name: BytePath) -> Bool { name.withCString { unlinkat(number, $0, 0) } == 0 }

  /// Syncs the folder's entries to disk.
  func sync(_ what: String) throws(ServerError) {
    if fsync(number) != 0 { throw failed("sync the folder", what) }
  }

  /// All names except `.` and `..`, in no particular order.
  func names() throws(ServerError) -> [BytePath] {
    var names: [BytePath] = []
    try forEachName { names.append($0) }
    return names
  }

  /// Calls `body` with each name except `.` and `..`, in no particular order.
  func forEachName(_ body: (BytePath) -> Void) throws(ServerError) {
    let copy = openAt(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if copy < 0 { throw failed("read", "a folder") }
    guard let stream = fdopendir(copy) else {
      defer { close(copy) }
      throw failed("read", "a folder")
    }
    defer { closedir(stream) }
    var isEmpty = true
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        // A list that breaks off is not taken for the whole: files that it lacks would be taken for deleted.
        if errno != 0 { throw failed("read", "a folder") }
        // A deleted folder does not even have the names `.` and `..`, which readdir does not report as an error.
        if isEmpty, try status().st_nlink == 0 {
          errno = ENOENT
          throw failed("read", "a folder that was deleted")
        }
        return
      }
      isEmpty = false
      let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
        tuple.withMemoryRebound(to: CChar.self, capacity: 256) { BytePath(cString: $0) }
      }
      if name != ".", name != ".." { body(name) }
    }
  }
}

/// Renames, but fails with EEXIST if the new name exists.
func renameNew(_ from: Folder, _ old: BytePath, _ to: Folder, _ new: BytePath) -> Int32 {
  old.withCString { old in new.withCString { new in renameNew(from.number, old, to.number, new) } }
}

/// Opens a folder below `folder` without following symbolic links. `path` must not contain `..`. `staysOnMount`:
/// crossing a mount fails with EXDEV, if the kernel supports the check.
private func openBeneath(
  _ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, staysOnMount: Bool = false
) -> Int32 {
  #if os(Linux)
    let noCrossing: UInt64 = staysOnMount ? 1 : 0  // RESOLVE_NO_XDEV
    let number = fb_openat2(folder, path, flags | O_CLOEXEC, 0, fb_resolve_beneath() | noCrossing)
    if number >= 0 || (errno != ENOSYS && errno != EPERM) { return number }
  #endif
  // For older kernels, and sandboxes that do not know the system call: opens component by component, with the same
  // effect.
  var current = fcntl(folder, F_DUPFD_CLOEXEC, 0)
  for part in BytePath(cString: path).components where current >= 0 {
    let next = part.withCString { openAt(current, $0, flags | O_CLOEXEC | O_NOFOLLOW) }
    let problem = errno
    close(current)
    errno = problem
    current = next
  }
  return current
}

/// `openat`, whose mode parameter is variadic.
func openAt(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
  openat(folder, path, flags, mode)
}

extension StoredItem {
  init(_ status: stat) {
    isFolder = status.st_mode & S_IFMT == S_IFDIR
    length = Int64(status.st_size)
    modified = status.modified
    modifiedSeconds = Int64(status.modificationTime.tv_sec)
    changed = nanoseconds(status.changeTime)
    inode = UInt64(status.st_ino)
  }
}

/// Identifies a file or folder, whatever its names are.
struct FileIdentity: Sendable, Equatable {
  private let device: dev_t
  private let inode: ino_t

  init(_ status: stat) { (device, inode) = (status.st_dev, status.st_ino) }
}

// Only this module uses these members: in another one the compiler does not always find members of a C type.
extension stat {
  var isFile: Bool { st_mode & S_IFMT == S_IFREG }
  /// Nanoseconds since 1970, clamped to the range of Int64.
  var modified: Int64 { nanoseconds(modificationTime) }

  #if os(Linux)
    var modificationTime: timespec { st_mtim }
    fileprivate var changeTime: timespec { st_ctim }
  #else
    var modificationTime: timespec { st_mtimespec }
    fileprivate var changeTime: timespec { st_ctimespec }
  #endif
}

/// The current time in nanoseconds since 1970.
package func wallClock() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return nanoseconds(time)
}

/// Files may have any time: times before 1677 and from 2262 on are clamped to the range of Int64.
func nanoseconds(_ time: timespec) -> Int64 {
  let (seconds, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
  return overflow ? (time.tv_sec < 0 ? .min : .max) : seconds.addingClamped(Int64(time.tv_nsec))
}

extension Duration {
  /// Nanoseconds, clamped to the range of Int64.
  var nanoseconds: Int64 {
    let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return components.seconds < 0 ? .min : .max }
    return seconds.addingClamped(components.attoseconds / 1_000_000_000)
  }
}
