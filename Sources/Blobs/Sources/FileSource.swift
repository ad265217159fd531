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

  /// Nanoseconds since 1970.
  private let now: @Sendable () -> Int64

  public init(_ path: BytePath) { self.init(path, now: { FileStamp.now }) }

  package init(_ path: BytePath, now: @escaping @Sendable () -> Int64) {
    self.path = path
    self.now = now
  }

  /// Opens and asks the file. One that was touched so lately that its times could not tell two versions apart (20 ms;
  /// up to 2 s where they are whole seconds, as on FAT) is waited for and asked again.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try openReader(at: 0, cancel).info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openReader(at: offset, cancel)
  }

  private func openReader(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> FileReader {
    try cancel.check("open \(path)")
    var descriptor: Int32
    repeat {
      // O_NONBLOCK: a pipe in the place of a file must not hang us; regular files ignore it.
      descriptor = path.open(O_RDONLY | O_NONBLOCK)
    } while descriptor < 0 && errno == EINTR
    // ENXIO: a socket, or a device that is not there.
    if descriptor < 0 && errno == ENXIO {
      throw BlobError(.unsupported, "open \(path): not a regular file", errno: errno)
    }
    if descriptor < 0 { throw systemError(errno, "open \(path)") }
    let reader = try FileReader(path, descriptor: descriptor)
    try reader.settle(now, cancel)
    try reader.start(at: offset)
    return reader
  }
}

private final class FileReader: BlobReader {
  private let path: BytePath
  private let descriptor: Int32
  private var offset: Int64 = 0
  private var stamp: FileStamp

  /// Takes over `descriptor`, also when it throws.
  init(_ path: BytePath, descriptor: Int32) throws(BlobError) {
    self.path = path
    self.descriptor = descriptor
    do throws(BlobError) {
      let status = try statusOf(descriptor, path)
      if status.st_mode & S_IFMT != S_IFREG { throw BlobError(.unsupported, "open \(path): not a regular file") }
      stamp = FileStamp(status, descriptor)
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  var info: BlobInfo { stamp.info }

  /// Waits until a further write would show in the times.
  func settle(_ now: () -> Int64, _ cancel: Cancellation) throws(BlobError) {
    for _ in 0..<50 {
      let wait = stamp.unsettled(at: now())
      if wait == 0 { return }
      try MonotonicClock().sleep(.nanoseconds(min(wait, 100_000_000)), cancel, "open \(path)")
      stamp = FileStamp(try statusOf(descriptor, path), descriptor)
    }
    throw BlobError(.changed, "open \(path): it is being written, and did not come to rest")
  }

  func start(at offset: Int64) throws(BlobError) {
    if !(0...stamp.size ~= offset) {
      throw BlobError(.outOfRange, "open \(path) at byte \(offset): it has \(stamp.size)")
    }
    self.offset = offset
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    // At the end one byte is asked for, to see whether there is one.
    let wanted = max(1, Int(clamping: min(Int64(buffer.count), stamp.size - offset)))
    var count: Int
    repeat { count = pread(descriptor, buffer.baseAddress, wanted, off_t(offset)) } while count < 0 && errno == EINTR
    if count < 0 { throw failure(errno) }
    if count == 0 && offset < stamp.size {
      throw BlobError(.truncated, "\(path) ended at byte \(offset) of \(stamp.size)")
    }
    if count > 0 && offset == stamp.size {
      throw BlobError(.changed, "\(path) goes on after the \(stamp.size) bytes it had when it was opened")
    }
    offset += Int64(count)
    return count
  }

  private func failure(_ number: Int32) -> BlobError {
    var error = systemError(number, "read \(path) at byte \(offset)")
    // The server of a network file system was started again, or the like: the name may still lead to the same file.
    if number == ESTALE { error.code = .invalidated }
    return error
  }

  func fileRegion() -> FileRegion? { FileRegion(descriptor: descriptor, offset: offset) }

  func finish() throws(BlobError) {
    let status = try statusOf(descriptor, path)
    var now = FileStamp(status)
    // It is open, and so where it was.
    now.volume = stamp.volume
    if now == stamp { return }
    let what =
      if status.st_nlink == 0 {
        "was replaced or deleted"
      } else if now.size != stamp.size {
        "went from \(stamp.size) to \(now.size) bytes"
      } else if now.modified != stamp.modified {
        "was written to"
      } else {
        "was moved, linked or given other rights"
      }
    throw BlobError(.changed, "\(path) \(what) while it was read")
  }
}

private func statusOf(_ descriptor: Int32, _ path: BytePath) throws(BlobError) -> stat {
  var status = stat()
  if fstat(descriptor, &status) != 0 { throw systemError(errno, "stat \(path)") }
  return status
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
