import Platform

/// The bytes of a regular file, read in place.
///
/// While it is open, device, inode, size, modification and change time must all stay the same. A file that shrinks,
/// grows, is rewritten or replaced throws `.changed` or `.truncated`; readers never get a mixture of versions. This
/// also covers writes through a memory mapping, except on in-memory file systems such as tmpfs, where such writes
/// cannot be detected.
public struct FileSource: BlobSource {
  /// The path of the file.
  public let path: BytePath
  public var access: BlobAccess { .random }

  /// The current time in nanoseconds since 1970.
  private let now: @Sendable () -> Int64

  /// Creates a source without opening the file.
  public init(_ path: BytePath) { self.init(path, now: { FileStamp.now }) }

  package init(_ path: BytePath, now: @escaping @Sendable () -> Int64) {
    self.path = path
    self.now = now
  }

  /// Opens the file and reads its properties. If the file was touched so recently that its times could not distinguish
  /// two versions (20 ms; up to 2 s where times are whole seconds, as on FAT), this method waits and checks again. If
  /// the file changed in the last two minutes and a program has it open for writing, its dirty pages are first written
  /// back to the disk.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try openReader(at: 0, cancel).info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openReader(at: offset, cancel)
  }

  private func openReader(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> FileReader {
    try FileReader(OpenFile(path, cancel, now: now), at: offset)
  }
}

/// Reads an open file. Several readers may share one file.
final class FileReader: BlobReader {
  private let file: OpenFile
  private var offset: Int64

  init(_ file: OpenFile, at offset: Int64) throws(BlobError) {
    self.file = file
    self.offset = offset
    if !(0...file.stamp.size ~= offset) {
      throw BlobError(.outOfRange, "open \(file.path) at byte \(offset): it has \(file.stamp.size)")
    }
  }

  var info: BlobInfo { file.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    let size = file.stamp.size
    // At the end the reader asks for one more byte, to detect growth.
    let wanted = max(1, Int(clamping: min(Int64(buffer.count), size - offset)))
    var count: Int
    repeat {
      count = pread(file.descriptor, buffer.baseAddress, wanted, off_t(offset))
    } while count < 0 && errno == EINTR
    if count < 0 { throw failure(errno) }
    if count == 0 && offset < size {
      throw BlobError(.truncated, "\(file.path) ended at byte \(offset) of \(size)")
    }
    if count > 0 && offset == size {
      throw BlobError(.changed, "\(file.path) goes on after the \(size) bytes it had when it was opened")
    }
    offset += Int64(count)
    return count
  }

  private func failure(_ number: Int32) -> BlobError {
    var error = systemError(number, "read \(file.path) at byte \(offset)")
    // For example, the server of a network file system was restarted. The path may still lead to the same file.
    if number == ESTALE { error.code = .invalidated }
    return error
  }

  func fileRegion() -> FileRegion? { FileRegion(descriptor: file.descriptor, offset: offset) }

  func finish() throws(BlobError) { try file.check() }
}

/// Converts an errno value to a `BlobError` with the system's message.
package func systemError(_ number: Int32, _ operation: String) -> BlobError {
  let code: BlobError.Code =
    switch number {
    case ENOENT, ENOTDIR: .notFound
    case EACCES, EPERM: .permission
    default: .io
    }
  return BlobError(code, "\(operation): \(String(cString: strerror(number)))", errno: number)
}
