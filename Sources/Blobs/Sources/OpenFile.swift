import Platform

/// A regular file that is open, and the version that it had when it was opened.
final class OpenFile: Sendable {
  let path: BytePath
  let descriptor: Int32
  let stamp: FileStamp
  /// The information of that version. It is stored because it is needed often.
  let info: BlobInfo
  /// nil: nothing can confirm that the content is unchanged once the change time has moved.
  private let watch: WriteWatch?

  /// Waits until a further write would change the file's times. With `watching`, the system is asked to report writes,
  /// where it can. `expected` is the stamp that the file most likely has, and `known` is the information for that
  /// stamp.
  init(
    _ path: BytePath, watching: Bool = false, expecting expected: FileStamp? = nil, as known: BlobInfo? = nil,
    _ cancel: Cancellation, now: () -> Int64 = { FileStamp.now }
  ) throws(BlobError) {
    try cancel.check("open \(path)")
    self.path = path
    let status: stat
    (descriptor, status) = try Self.open(path, cancel)
    do throws(BlobError) {
      if status.st_size == 0, try Self.hasUnsizedContent(descriptor, path) {
        throw BlobError(
          .unsupported,
          "open \(path): its size is 0 and it has content, as files have that the system makes up: read it as a stream")
      }
      var found = FileStamp(status, descriptor)
      // The watch begins before the version is determined, so that no write can be missed.
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

  /// Files of up to this many bytes are not watched: reading them again is faster than setting up the watch.
  static let leastWatched: Int64 = 64 << 10

  /// The kernel ends a lease after `/proc/sys/fs/lease-break-time`, which is 45 seconds unless somebody has changed it.
  private static let longestLease = Duration.seconds(60)

  /// Opens a regular file. Throws `.unsupported` if another kind of object has taken its place: opening a pipe could
  /// wait forever, and reading a device could be endless. Waits while another program gives up a lease on the file, as
  /// Samba and the kernel's NFS server hold them for their clients.
  static func open(
    _ path: BytePath, _ cancel: Cancellation = Cancellation()
  ) throws(BlobError) -> (descriptor: Int32, status: stat) {
    let clock = MonotonicClock()
    var deadline: Duration?
    var descriptor: Int32
    while true {
      // O_NONBLOCK: opening a pipe in the place of a file must not block.
      descriptor = path.open(O_RDONLY | O_NONBLOCK)
      if descriptor >= 0 { break }
      if errno == EINTR { continue }
      // EAGAIN: the kernel has asked the holder of a lease to give it up.
      guard errno == EAGAIN else { break }
      if let deadline, clock.now >= deadline {
        throw BlobError(
          .io, "open \(path): another program holds a lease on it, and does not give it up", errno: EAGAIN)
      }
      deadline = deadline ?? clock.now + longestLease
      try clock.sleep(.milliseconds(20), cancel, "open \(path)")
    }
    // ENXIO: a socket, or a device that does not exist.
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

  /// Whether an open file of size 0 nevertheless has content. Only its first byte is read. A file that has a size by
  /// now is an ordinary file.
  static func hasUnsizedContent(_ descriptor: Int32, _ path: BytePath) throws(BlobError) -> Bool {
    var byte: UInt8 = 0
    var count: Int
    repeat {
      count = pread(descriptor, &byte, 1, 0)
    } while count < 0 && errno == EINTR
    if count == 0 { return false }
    // EAGAIN: content will follow. ESPIPE: the file can only be read sequentially.
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
      // A write that happens before the pages are written back may be the last one that changes the times.
      let latest = FileStamp(try statusOf(descriptor, path), descriptor)
      if wait == 0 && latest == stamp { return }
      stamp = latest
    }
    throw BlobError(.changed, "open \(path): it is being written, and did not come to rest")
  }

  /// Throws `.changed` unless the content is certainly still the version that was opened.
  func check() throws(BlobError) {
    let status = try statusOf(descriptor, path)
    var now = FileStamp(status)
    // An open file cannot move to another file system.
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
    // A program that writes and then restores the modification time moves only the change time, as a rename does.
    if status.st_nlink > 0, unchanged == stamp, watch?.hasSeenNoWrite == true { return }
    throw BlobError(.changed, "\(path) \(what) while it was read")
  }
}

private func statusOf(_ descriptor: Int32, _ path: BytePath) throws(BlobError) -> stat {
  var status = stat()
  if fstat(descriptor, &status) != 0 { throw systemError(errno, "stat \(path)") }
  return status
}

// Writes through a mapping: the first store into a page changes the file's times; later stores do not, until the kernel
// has written the page back. So dirty pages are written back before a version is accepted; then every later write
// shows.
extension OpenFile {
  /// Returns false if nobody has the file open or mapped for writing. A mapping created later changes the times with
  /// its first store, whether the page is dirty or not.
  fileprivate static func canBeMapped(_ stamp: FileStamp, _ descriptor: Int32) -> Bool {
    if stamp.size == 0 { return false }
    #if os(Linux)
      if fb_is_written(descriptor) != 0 { return true }
    #endif
    // Writing a small file back would take longer than sending it.
    return stamp.volume?.hidesMappings == true && stamp.size > leastWatched
  }

  /// Writes dirty pages to the disk and waits for it. On file systems without a disk, like tmpfs, this does nothing,
  /// and writes through a mapping cannot be detected.
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
    // Almost nothing is left to write by now, but overlayfs writes back only for this call.
    if flushContent(descriptor) != 0, case let number = errno, isLoss(number) {
      throw systemError(number, "write back \(path), which another program has open")
    }
  }

  /// Other errors mean that the file system has nothing to write back.
  private static func isLoss(_ number: Int32) -> Bool { [EIO, ENOSPC, EDQUOT].contains(number) }
}
