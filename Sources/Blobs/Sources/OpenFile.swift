import Platform

/// A regular file that is open, and the version it had then.
final class OpenFile: Sendable {
  let path: BytePath
  let descriptor: Int32
  let stamp: FileStamp
  /// Of that version: put together once, since it is asked for often.
  let info: BlobInfo
  /// nil: nothing vouches for the content of a file whose change time has moved.
  private let watch: WriteWatch?

  /// Waits until a further write would show in the times. With `watching`, the system is asked to tell of writes, where
  /// it can. `expected`: what it most likely is, and what that says of it.
  init(
    _ path: BytePath, watching: Bool = false, expecting expected: FileStamp? = nil, as known: BlobInfo? = nil,
    _ cancel: Cancellation, now: () -> Int64 = { FileStamp.now }
  ) throws(BlobError) {
    try cancel.check("open \(path)")
    self.path = path
    let status: stat
    (descriptor, status) = try Self.open(path)
    do throws(BlobError) {
      if status.st_size == 0, try Self.hasUnsizedContent(descriptor, path) {
        throw BlobError(
          .unsupported,
          "open \(path): its size is 0 and it has content, as files have that the system makes up: read it as a stream")
      }
      var found = FileStamp(status, descriptor)
      // Before the version is settled, so that no write to it can be missed.
      let isWatched = watching && found.size > Self.leastWatched && found.volume?.keepsNumbers == true
      watch = isWatched ? WriteWatch(descriptor) : nil
      try Self.settle(&found, descriptor, path, now, cancel)
      stamp = found
      info = found == expected ? known ?? found.info : found.info
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Bytes that are read again in less time than the system takes to watch a file.
  static let leastWatched: Int64 = 64 << 10

  /// Opens a regular file. Throws `.unsupported` where something else is, which may have taken a file's place: a pipe would be
  /// waited for, and a device read, without an end.
  static func open(_ path: BytePath) throws(BlobError) -> (descriptor: Int32, status: stat) {
    var descriptor: Int32
    repeat {
      // O_NONBLOCK: a pipe in the place of a file must not hang us; regular files ignore it.
      descriptor = path.open(O_RDONLY | O_NONBLOCK)
    } while descriptor < 0 && errno == EINTR
    // ENXIO: a socket, or a device that is not there.
    if descriptor < 0 && errno == ENXIO {
      throw BlobError(.unsupported, "open \(path): not a regular file, but a socket or a device", errno: errno)
    }
    if descriptor < 0 { throw systemError(errno, "open \(path)") }
    do throws(BlobError) {
      let status = try statusOf(descriptor, path)
      let kind = FileKind(mode: status.st_mode)
      if kind == .file { return (descriptor, status) }
      throw BlobError(.unsupported, "open \(path): not a regular file, but \(kind.rawValue)")
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// Whether an open file of size 0 has content all the same. It is read at its first byte only; a file that has got a
  /// size meanwhile is an ordinary one.
  static func hasUnsizedContent(_ descriptor: Int32, _ path: BytePath) throws(BlobError) -> Bool {
    var byte: UInt8 = 0
    var count: Int
    repeat {
      count = pread(descriptor, &byte, 1, 0)
    } while count < 0 && errno == EINTR
    if count == 0 { return false }
    // EAGAIN: there will be some. ESPIPE: it can be read in order only.
    if count < 0, ![EAGAIN, ESPIPE].contains(errno) { throw systemError(errno, "read \(path) at byte 0") }
    return try statusOf(descriptor, path).st_size == 0
  }

  private static func settle(
    _ stamp: inout FileStamp, _ descriptor: Int32, _ path: BytePath, _ now: () -> Int64, _ cancel: Cancellation
  ) throws(BlobError) {
    for _ in 0..<50 {
      let time = now()
      let wait = stamp.unsettled(at: time)
      if wait > 0 {
        try MonotonicClock().sleep(.nanoseconds(min(wait, 100_000_000)), cancel, "open \(path)")
      } else if !stamp.isRecent(at: time) || !canBeMapped(stamp, descriptor) {
        return
      } else {
        try writeBack(descriptor, stamp.size, path, cancel)
      }
      // A write that comes before the pages are written back may be the last that moves the times.
      let latest = FileStamp(try statusOf(descriptor, path), descriptor)
      if wait == 0 && latest == stamp { return }
      stamp = latest
    }
    throw BlobError(.changed, "open \(path): it is being written, and did not come to rest")
  }

  /// Throws `.changed` unless the content is sure to be still the version that was opened.
  func check() throws(BlobError) {
    let status = try statusOf(descriptor, path)
    var now = FileStamp(status)
    // It is open, and so where it was.
    now.volume = stamp.volume
    if now == stamp { return }
    var unchanged = now
    unchanged.changed = stamp.changed
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
    // Whoever writes and then puts the modification time back moves the change time only, as a rename does.
    if status.st_nlink > 0, unchanged == stamp, watch?.hasSeenNoWrite == true { return }
    throw BlobError(.changed, "\(path) \(what) while it was read")
  }
}

private func statusOf(_ descriptor: Int32, _ path: BytePath) throws(BlobError) -> stat {
  var status = stat()
  if fstat(descriptor, &status) != 0 { throw systemError(errno, "stat \(path)") }
  return status
}

// Writes through a mapping. The first store into a page moves the file's times; later ones do not, until the kernel has
// written the page back. So what is dirty is written back before a version is believed: each later write shows.
extension OpenFile {
  /// False where nobody has the file open or mapped for writing. A mapping that is made later moves the times with its
  /// first store, whether the page is dirty or not.
  fileprivate static func canBeMapped(_ stamp: FileStamp, _ descriptor: Int32) -> Bool {
    if stamp.size == 0 { return false }
    #if os(Linux)
      if fb_is_written(descriptor) != 0 { return true }
    #endif
    // To write a small file back would take longer than to send it.
    return stamp.volume?.hidesMappings == true && stamp.size > leastWatched
  }

  /// Waits for the disk. On file systems without one, like tmpfs, this does nothing, and a write through a mapping can be
  /// seen by no one.
  fileprivate static func writeBack(
    _ descriptor: Int32, _ size: Int64, _ path: BytePath, _ cancel: Cancellation
  ) throws(BlobError) {
    #if os(Linux)
      var start: Int64 = 0
      while start < size {
        try cancel.check("open \(path)")
        let length = min(size - start, 64 << 20)
        let number = fb_write_back(descriptor, start, length)
        if isLoss(number) { throw systemError(number, "write back \(path), which another program has open") }
        start += length
      }
    #endif
    // Nearly nothing is left for it, but overlayfs writes back for this call only.
    if flushContent(descriptor) != 0, case let number = errno, isLoss(number) {
      throw systemError(number, "write back \(path), which another program has open")
    }
  }

  /// Other errors mean that the file system has nothing to write back.
  private static func isLoss(_ number: Int32) -> Bool { [EIO, ENOSPC, EDQUOT].contains(number) }
}
