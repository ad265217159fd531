import BlobServer
import Blobs
import Platform

/// An open folder into which files are restored. Whatever is below it is opened name by name and no symbolic link is
/// followed, so that nothing outside of it is read or written.
struct RestoreFolder: Sendable {
  /// For messages.
  let path: BytePath
  private let descriptor: Descriptor
  var number: Int32 { descriptor.number }

  /// Opens the folder that the user has named, which may be reached by symbolic links. Folders that are missing are made.
  init(_ path: BytePath) throws(BlobError) {
    var number = path.open(O_RDONLY | O_DIRECTORY)
    if number < 0, errno == ENOENT {
      var folder = BytePath(path.isAbsolute ? "/" : "")
      for component in path.components {
        folder = folder.appending(component)
        _ = folder.withCString { mkdir($0, 0o777) }
      }
      number = path.open(O_RDONLY | O_DIRECTORY)
    }
    if number < 0 { throw Self.failure("open the folder", path) }
    (self.path, descriptor) = (path, Descriptor(number))
  }

  private init(_ path: BytePath, _ descriptor: Descriptor) { (self.path, self.descriptor) = (path, descriptor) }

  /// The folder at a path below this one, which is made if it is missing.
  func folder(_ relative: BytePath, mode: mode_t = 0o777) throws(BlobError) -> RestoreFolder {
    var folder = self
    for name in relative.components { folder = try folder.child(name, mode) }
    return folder
  }

  private func child(_ name: BytePath, _ mode: mode_t) throws(BlobError) -> RestoreFolder {
    let path = path.appending(name)
    var number = openFile(name, O_RDONLY | O_DIRECTORY)
    if number < 0, errno == ENOENT {
      if name.withCString({ mkdirat(self.number, $0, mode) }) != 0, errno != EEXIST {
        throw Self.failure("make the folder", path)
      }
      try sync()
      number = openFile(name, O_RDONLY | O_DIRECTORY)
    }
    if number < 0, errno == ENOTDIR || errno == ELOOP {
      throw BlobError(
        .io,
        "open the folder \(path): a file or a symbolic link has that name, and no link is followed: rename it, or "
          + "unseal into another folder", errno: errno)
    }
    if number < 0 { throw Self.failure("open the folder", path) }
    return RestoreFolder(path, Descriptor(number))
  }

  /// Opens a file of this folder. A symbolic link fails.
  func open(_ name: BytePath, _ flags: Int32) throws(BlobError) -> Descriptor {
    let number = openFile(name, flags | O_NONBLOCK)
    if number < 0 { throw Self.failure("open", path.appending(name)) }
    return Descriptor(number)
  }

  private func openFile(_ name: BytePath, _ flags: Int32) -> Int32 {
    name.withCString { openat(number, $0, flags | O_NOFOLLOW | O_CLOEXEC, 0o666) }
  }

  /// The status of what has this name; nil: there is nothing.
  func status(_ name: BytePath) throws(BlobError) -> stat? {
    var status = stat()
    if name.withCString({ fstatat(number, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 { return status }
    if errno == ENOENT { return nil }
    throw Self.failure("look at", path.appending(name))
  }

  /// Writes the entries of the folder to the disk.
  func sync() throws(BlobError) {
    // Some file systems cannot sync a folder, and then have nothing to sync.
    if fsync(number) != 0, errno != EINVAL { throw Self.failure("sync the folder", path) }
  }

  /// The error for `errno`.
  static func failure(_ operation: String, _ path: BytePath) -> BlobError {
    let number = errno
    return BlobError(.io, "\(operation) \(path): \(String(cString: strerror(number)))", errno: number)
  }
}

extension BytePath {
  /// Whether a name from outside can be that of a file in a folder.
  var isOneName: Bool {
    1...255 ~= bytes.count && self != "." && self != ".." && !bytes.contains(0) && !bytes.contains(UInt8(ascii: "/"))
  }
}
