import Blobs
import Platform

/// Owns a file descriptor.
package final class Descriptor: Sendable {
  package let number: Int32
  package init(_ number: Int32) { self.number = number }
  deinit { close(number) }
}

/// An open folder, from which paths are walked that cannot leave it.
struct Folder: Sendable {
  let descriptor: Descriptor
  var number: Int32 { descriptor.number }

  /// Any path, as the user gave it.
  init(_ path: BytePath) throws(ServerError) {
    let number = path.withCString { openAt(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    if number < 0 { throw failed("open the folder", path.description) }
    descriptor = Descriptor(number)
  }

  init(_ descriptor: Descriptor) { self.descriptor = descriptor }

  /// The folder at `path` below this one. Throws 404 when there is none, 403 where a symbolic link is in the way, 409
  /// where a file is. `creating` makes what is missing, durably.
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

  /// As `folder`, for one that is there; nil where it is on another mount, as far as the system tells. Files cannot be
  /// renamed into another mount, even of the same device.
  func folder(onSameMount path: ServedPath) throws(ServerError) -> Folder? {
    if path.isRoot { return self }
    let number = BytePath(path.bytes).withCString {
      openBeneath(self.number, $0, O_RDONLY | O_DIRECTORY, staysOnMount: true)
    }
    if number >= 0 { return Folder(Descriptor(number)) }
    if errno == EXDEV { return nil }
    throw failed("open the folder", path.description)
  }

  /// The folder `name` in this one, made if it is missing, durably. `path` is for messages.
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

  /// A file in this folder; a symbolic link in its place is 403. Never waits for the other end of a pipe that someone has
  /// put in the place of a file.
  func open(_ name: BytePath, _ flags: Int32) throws(ServerError) -> Descriptor {
    let flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let number = name.withCString { openAt(self.number, $0, flags, 0o666) }
    if number < 0 { throw failed("open", name.description) }
    return Descriptor(number)
  }

  /// nil when nothing is there.
  func status(_ name: BytePath) throws(ServerError) -> stat? {
    var status = stat()
    if name.withCString({ fstatat(number, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 { return status }
    if errno == ENOENT { return nil }
    throw failed("look at", name.description)
  }

  /// Of the folder itself.
  func status() throws(ServerError) -> stat {
    var status = stat()
    if fstat(number, &status) != 0 { throw failed("look at", "an open folder") }
    return status
  }

  /// False when there was nothing.
  @discardableResult func unlink(_ name: BytePath) -> Bool { name.withCString { unlinkat(number, $0, 0) } == 0 }

  /// Makes names durable.
  func sync(_ what: String) throws(ServerError) {
    if fsync(number) != 0 { throw failed("sync the folder", what) }
  }

  /// Every name but `.` and `..`, in no order.
  func names() throws(ServerError) -> [BytePath] {
    let copy = openAt(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0, let stream = fdopendir(copy) else { throw failed("read the folder", "") }
    defer { closedir(stream) }
    var names: [BytePath] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
        tuple.withMemoryRebound(to: CChar.self, capacity: 256) { BytePath(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}

/// Renames unless the new name is taken, which is EEXIST.
func renameNew(_ from: Folder, _ old: BytePath, _ to: Folder, _ new: BytePath) -> Int32 {
  old.withCString { old in
    new.withCString { new in
      #if os(Linux)
        let status = fb_rename_noreplace(from.number, old, to.number, new)
        if status == 0 || (errno != EINVAL && errno != ENOSYS) { return status }
      #endif
      // Where the file system has no such rename (NFS): a second name, then away with the first.
      if linkat(from.number, old, to.number, new, 0) != 0 { return -1 }
      return unlinkat(from.number, old, 0)
    }
  }
}

/// Opens a folder below `folder` without following any symbolic link. `path` has no `..` in it. `staysOnMount`: a mount
/// on the way is EXDEV, where the kernel can tell.
private func openBeneath(
  _ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, staysOnMount: Bool = false
) -> Int32 {
  #if os(Linux)
    let noCrossing: UInt64 = staysOnMount ? 1 : 0  // RESOLVE_NO_XDEV
    let number = fb_openat2(folder, path, flags | O_CLOEXEC, 0, fb_resolve_beneath() | noCrossing)
    if number >= 0 || (errno != ENOSYS && errno != EPERM) { return number }
  #endif
  // Older kernels, and sandboxes that do not know the call: component by component, with the same effect.
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

/// The error that `errno` means for a client.
func failed(_ operation: String, _ what: String) -> ServerError {
  let number = errno
  let text = "\(operation) \(what): \(String(cString: strerror(number)))"
  switch number {
  case ENOENT: return ServerError(404, text)
  case ELOOP: return ServerError(403, "\(operation) \(what): symbolic links are not followed")
  case EXDEV:
    return ServerError(
      403, "\(operation) \(what): it is on another file system, or another mount, than the served folder")
  case EACCES, EPERM, EROFS: return ServerError(403, text)
  case ENOTDIR: return ServerError(409, "\(operation) \(what): a file is in the place of a folder")
  case EISDIR: return ServerError(409, "\(operation) \(what): it is a folder")
  case ENAMETOOLONG: return ServerError(414, text)
  case ENOSPC, EDQUOT: return ServerError(507, text)
  case EFBIG: return ServerError(413, text)
  default: return ServerError(500, text)
  }
}

/// `openat`, whose mode is variadic.
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

extension stat {
  var isFile: Bool { st_mode & S_IFMT == S_IFREG }
  /// Nanoseconds since 1970, as far as 64 bits reach.
  var modified: Int64 { nanoseconds(modificationTime) }

  #if os(Linux)
    var modificationTime: timespec { st_mtim }
    fileprivate var changeTime: timespec { st_ctim }
  #else
    var modificationTime: timespec { st_mtimespec }
    fileprivate var changeTime: timespec { st_ctimespec }
  #endif
}

/// Nanoseconds since 1970.
func wallClock() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return nanoseconds(time)
}

/// Files may have any time: what 64 bits cannot hold, from 2262 on and before 1677, is their largest or smallest.
private func nanoseconds(_ time: timespec) -> Int64 {
  let (seconds, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
  return overflow ? (time.tv_sec < 0 ? .min : .max) : seconds.addingClamped(Int64(time.tv_nsec))
}

extension Duration {
  /// Clamped to what fits.
  var nanoseconds: Int64 {
    let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return components.seconds < 0 ? .min : .max }
    return seconds.addingClamped(components.attoseconds / 1_000_000_000)
  }
}
