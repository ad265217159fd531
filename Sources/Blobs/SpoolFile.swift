import Platform

/// An unnamed temporary file, of which nothing remains even if the process is killed. Where the file system does not
/// support unnamed files, the file is created and unlinked at once; if the process is killed in between, the next
/// `sweep` of the folder deletes it.
package final class SpoolFile {
  private let descriptor: Int32
  private let folder: BytePath
  /// Offsets, in the source, of the file's first byte and of the next byte to append.
  private let base: Int64
  private var end: Int64

  private static let prefix = Array(".fullbore-spool-".utf8)

  init(in folder: BytePath, from base: Int64) throws(BlobError) {
    self.folder = folder
    self.base = base
    end = base
    descriptor = try Self.make(in: folder)
  }

  deinit { close(descriptor) }

  /// Deletes the files that killed processes of this user left in the folder, and nothing else.
  static func sweep(_ folder: BytePath) throws(BlobError) {
    guard let listing = folder.withCString({ opendir($0) }) else { throw systemError(errno, "spool into \(folder)") }
    defer { closedir(listing) }
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { BytePath($0.prefix { $0 != 0 }) }
      guard name.bytes.starts(with: prefix), name.bytes.count == prefix.count + 16 else { continue }
      name.withCString { name in
        var status = stat()
        guard fstatat(dirfd(listing), name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { return }
        // If another process has just created the file, it is about to unlink it anyway.
        unlinkat(dirfd(listing), name, 0)
      }
    }
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws(BlobError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(end - base))
      if count < 0 && errno == EINTR { continue }
      if count < 0 { throw systemError(errno, "spool into \(folder) at byte \(end)") }
      end += Int64(count)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(BlobError) -> Int {
    var count: Int
    repeat {
      count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset - base))
    } while count < 0
      && errno == EINTR
    if count < 0 { throw systemError(errno, "read back what was spooled into \(folder), byte \(offset)") }
    if count == 0 { throw BlobError(.io, "what was spooled into \(folder) is gone from byte \(offset) on") }
    return count
  }

  /// Returns the space of the bytes before `offset` to the file system, where it supports that.
  func release(upTo offset: Int64) {
    #if os(Linux)
      if offset > base { _ = fb_punch_hole(descriptor, 0, offset - base) }
    #endif
  }

  private static func make(in folder: BytePath) throws(BlobError) -> Int32 {
    #if os(Linux)
      let descriptor = folder.withCString { openFile($0, fb_o_tmpfile() | O_RDWR | O_CLOEXEC) }
      if descriptor >= 0 { return descriptor }
      // The errors of file systems that do not support unnamed files.
      if ![EOPNOTSUPP, EISDIR, EINVAL].contains(errno) { throw systemError(errno, "spool into \(folder)") }
    #endif
    return try unlinked(in: folder)
  }

  package static func unlinked(in folder: BytePath) throws(BlobError) -> Int32 {
    let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    let name = Self.prefix + Array(String(repeating: "0", count: 16 - number.utf8.count).utf8) + Array(number.utf8)
    let path = folder.appending(BytePath(name))
    let descriptor = path.withCString { openFile($0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC) }
    if descriptor < 0 { throw systemError(errno, "spool into \(folder)") }
    path.withCString { _ = unlink($0) }
    return descriptor
  }
}

/// Creates files with permissions for this user only.
private func openFile(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { open(path, flags, 0o600) }
