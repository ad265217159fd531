#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The bytes of a regular file, read in place.
///
/// While it is open, device, inode, size, modification and change time must all stay; a file that shrinks, grows, is
/// rewritten or replaced is `.changed` or `.truncated`, never a mixture.
public struct FileSource: BlobSource {
  public let path: BytePath
  public var access: BlobAccess { .random }

  public init(_ path: BytePath) { self.path = path }

  /// Opens and asks the file. A file whose modification time is too near to tell two versions apart (20 ms; 2 s where
  /// times are whole even seconds, as on FAT) is waited for and asked again.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try openReader(at: 0, cancel).info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openReader(at: offset, cancel)
  }

  private func openReader(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> FileReader {
    try cancel.check("open \(path)")
    // O_NONBLOCK: a pipe in the place of a file must not hang us; regular files ignore it.
    let descriptor = path.withCString { openFile($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    if descriptor < 0 { throw systemError(errno, "open \(path)") }
    let reader = try FileReader(path, descriptor: descriptor, offset: offset)
    return try reader.settled(cancel)
  }
}

/// The numbers by which one version of a file is told from another.
public struct FileStamp: Sendable, Hashable {
  public var device: UInt64
  public var inode: UInt64
  public var size: Int64
  /// Nanoseconds since 1970.
  public var modified: Int64
  /// Nanoseconds since 1970; also moves when mode, owner or links change.
  public var changed: Int64

  public init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    #if canImport(Glibc)
      modified = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
      changed = Int64(status.st_ctim.tv_sec) * 1_000_000_000 + Int64(status.st_ctim.tv_nsec)
    #else
      modified = Int64(status.st_mtimespec.tv_sec) * 1_000_000_000 + Int64(status.st_mtimespec.tv_nsec)
      changed = Int64(status.st_ctimespec.tv_sec) * 1_000_000_000 + Int64(status.st_ctimespec.tv_nsec)
    #endif
  }

  /// Size and modification time decide whether it is other content; the rest only raises a doubt.
  public var validator: Validator {
    Validator(version: "\(size)-\(modified)", instance: "\(device)-\(inode)-\(changed)")
  }

  public var info: BlobInfo { BlobInfo(length: size, validator: validator) }

  /// How long to wait until a further write would show in the times. 0 for a file left alone for a while.
  fileprivate func unsettled(at now: Int64) -> Int64 {
    let coarse = modified % 2_000_000_000 == 0
    let wait = modified + (coarse ? 2_000_000_000 : 20_000_000) - now
    // A time in the future says nothing about the next write: do not wait for it.
    return wait > 0 && modified <= now ? wait : 0
  }
}

private final class FileReader: BlobReader {
  private let path: BytePath
  private let descriptor: Int32
  private var offset: Int64
  private var stamp: FileStamp

  /// Takes over `descriptor`, also when it throws.
  init(_ path: BytePath, descriptor: Int32, offset: Int64) throws(BlobError) {
    self.path = path
    self.descriptor = descriptor
    self.offset = offset
    var status = stat()
    if fstat(descriptor, &status) != 0 {
      let error = systemError(errno, "stat \(path)")
      close(descriptor)
      throw error
    }
    stamp = FileStamp(status)
    if status.st_mode & S_IFMT != S_IFREG {
      close(descriptor)
      throw BlobError(.unsupported, "open \(path): not a regular file")
    }
    if offset > stamp.size {
      close(descriptor)
      throw BlobError(.outOfRange, "open \(path) at byte \(offset): it has \(stamp.size)")
    }
  }

  deinit { close(descriptor) }

  var info: BlobInfo { stamp.info }

  func settled(_ cancel: Cancellation) throws(BlobError) -> FileReader {
    for _ in 0..<50 {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      let wait = stamp.unsettled(at: Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec))
      if wait == 0 { return self }
      try cancel.check("open \(path)")
      usleep(UInt32(min(wait, 100_000_000) / 1000 + 1))
      stamp = try currentStamp()
    }
    throw BlobError(.changed, "open \(path): it is being written, and did not come to rest")
  }

  private func currentStamp() throws(BlobError) -> FileStamp {
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw systemError(errno, "stat \(path)") }
    return FileStamp(status)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    while true {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
      if count < 0 && errno == EINTR { continue }
      if count < 0 { throw systemError(errno, "read \(path) at byte \(offset)") }
      if count == 0 && offset < stamp.size {
        throw BlobError(.truncated, "\(path) ended at byte \(offset) of \(stamp.size)")
      }
      offset += Int64(count)
      return count
    }
  }

  func fileRegion() -> FileRegion? { FileRegion(descriptor: descriptor, offset: offset) }

  func finish() throws(BlobError) {
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw systemError(errno, "stat \(path)") }
    let now = FileStamp(status)
    if now == stamp { return }
    let isGone = status.st_nlink == 0
    let isResized = now.size != stamp.size
    let what =
      isGone
      ? "was replaced or deleted"
      : isResized ? "went from \(stamp.size) to \(now.size) bytes" : "was rewritten"
    throw BlobError(.changed, "\(path) \(what) while it was read")
  }
}

/// The system's refusal as a `BlobError`, in its own words.
package func systemError(_ number: Int32, _ operation: String) -> BlobError {
  let code: BlobError.Code =
    switch number {
    case ENOENT, ENOTDIR: .notFound
    case EACCES, EPERM: .permission
    default: .io
    }
  return BlobError(code, "\(operation): \(String(cString: strerror(number)))", errno: number)
}

private func openFile(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { open(path, flags) }
