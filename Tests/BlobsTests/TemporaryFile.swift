import Blobs
import Platform
import Synchronization

/// A file in the system's temporary folder, removed with its owner.
final class TemporaryFile: Sendable {
  let path: BytePath

  /// `age` moves its modification time into the past, so that no open waits until it is stable.
  init(_ bytes: [UInt8] = [], age: Duration = .seconds(60)) throws {
    path = try Self.lasting(bytes, age: age)
  }

  deinit { path.withCString { _ = unlink($0) } }

  var source: FileSource { FileSource(path) }

  /// Overwrites in place from `offset` on; the size changes only if the bytes extend past the end.
  func overwrite(_ bytes: [UInt8], at offset: Int64 = 0) throws {
    let descriptor = path.withCString { Platform.open($0, O_WRONLY) }
    defer { close(descriptor) }
    try check(pwrite(descriptor, bytes, bytes.count, off_t(offset)) == bytes.count)
  }

  func resize(to length: Int64) throws { try check(path.withCString { truncate($0, off_t(length)) } == 0) }

  /// Sets the modification time, in nanoseconds since 1970.
  func setModified(_ time: Int64) throws { try Self.setModified(path, time) }

  /// A file that outlives the test, in a folder that the process removes when it ends.
  static func lasting(_ bytes: [UInt8], sparse length: Int64? = nil, age: Duration = .seconds(60)) throws -> BytePath {
    var template = Array((folder.appending("file-XXXXXX")).bytes.map { CChar(bitPattern: $0) }) + [0]
    let descriptor = mkstemp(&template)
    defer { close(descriptor) }
    try check(descriptor >= 0 && write(descriptor, bytes, bytes.count) == bytes.count)
    if let length { try check(ftruncate(descriptor, off_t(length)) == 0) }
    let path = BytePath(cString: template)
    try setModified(path, FileStamp.now - Int64(age / .nanoseconds(1)))
    return path
  }

  /// As `lasting`, but returns the same file for the same name, for checks that only read it. A new file would have to
  /// become stable before each open.
  static func shared(
    _ name: String, _ bytes: @autoclosure () -> [UInt8], sparse length: Int64? = nil
  ) throws -> BytePath {
    if let path = files.withLock({ $0[name] }) { return path }
    let path = try lasting(bytes(), sparse: length)
    files.withLock { $0[name] = path }
    return path
  }
  private static let files = Mutex<[String: BytePath]>([:])

  private static func setModified(_ path: BytePath, _ time: Int64) throws {
    let time = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
    try check(path.withCString { utimensat(AT_FDCWD, $0, [time, time], 0) } == 0)
  }

  /// A folder for this process; its files are deleted when the process ends.
  static let folder: BytePath = {
    var template = Array("/tmp/fullbore-blobs-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("no folder can be made in /tmp: errno \(errno)") }
    atexit(removeFolder)
    return BytePath(cString: template)
  }()
}

private func removeFolder() {
  // The folder has no subfolders.
  guard let listing = TemporaryFile.folder.withCString({ opendir($0) }) else { return }
  while let entry = readdir(listing) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { BytePath($0.prefix { $0 != 0 }) }
    TemporaryFile.folder.appending(name).withCString { _ = unlink($0) }
  }
  closedir(listing)
  TemporaryFile.folder.withCString { _ = rmdir($0) }
}

struct SystemFailure: Error {
  let number = errno
}

func check(_ succeeded: Bool) throws {
  if !succeeded { throw SystemFailure() }
}
