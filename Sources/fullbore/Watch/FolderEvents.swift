import BlobUpload
import Blobs
import Platform

/// What the system reports about a name in a watched folder.
struct FolderEvent: Sendable, Hashable {
  enum Kind: Sendable {
    /// The queue overflowed, and events were lost.
    case lost
    /// The system has ended the watch.
    case ended
    case appeared, written
    /// A writer has closed the file, or it was renamed to this name.
    case closed
    case movedAway
    /// The watched folder itself was moved or renamed.
    case moved
  }

  let kind: Kind
  /// The watch descriptor; -1 if events were lost.
  let watch: Int32
  let name: BytePath
  let isOfFolder: Bool
}

/// The events of watched folders, with a pipe that ends a wait.
///
/// They come from inotify on Linux. On other systems no folder can be watched, so that everything is walked again at
/// intervals.
final class FolderEvents: Sendable {
  /// -1: no events come.
  private let descriptor: Int32
  private let wakeup: (read: Int32, write: Int32)

  init() throws(UploadError) {
    #if os(Linux)
      descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
      if descriptor < 0 {
        let hint = errno == EMFILE ? " (the limits are ulimit -n and fs.inotify.max_user_instances)" : ""
        throw UploadError(.giveUp, .source, "inotify: \(String(cString: strerror(errno)))\(hint)")
      }
    #else
      descriptor = -1
    #endif
    wakeup = makePipe()
    for end in [wakeup.read, wakeup.write] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
  }

  deinit { for descriptor in [descriptor, wakeup.read, wakeup.write] where descriptor >= 0 { close(descriptor) } }

  /// Returns the watch descriptor, which is the existing one if the folder is already watched; negative on failure, with
  /// the reason in `errno`, which is ENOTSUP if the system has no such events.
  func add(_ folder: BytePath, follow: Bool) -> Int32 {
    #if os(Linux)
      var mask =
        IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR
        | IN_EXCL_UNLINK
      if !follow { mask |= IN_DONT_FOLLOW }
      return folder.withCString { inotify_add_watch(descriptor, $0, UInt32(bitPattern: mask)) }
    #else
      errno = ENOTSUP
      return -1
    #endif
  }

  func remove(_ watch: Int32) {
    #if os(Linux)
      _ = inotify_rm_watch(descriptor, watch)
    #else
      preconditionFailure("no folder is watched")
    #endif
  }

  /// Calls `body` for all pending events in order. Does not wait.
  func read(_ body: (FolderEvent) -> Void) {
    #if os(Linux)
      let header = MemoryLayout<inotify_event>.size
      withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { buffer in
        while case let count = Platform.read(descriptor, buffer.baseAddress, buffer.count), count > 0 {
          var offset = 0
          while offset + header <= count {
            let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let name = buffer[(offset + header)..<(offset + header + Int(event.len))].prefix { $0 != 0 }
            body(FolderEvent(event, BytePath(name)))
            offset += header + Int(event.len)
          }
        }
      }
    #else
      // No folder is watched, so no event is pending.
    #endif
  }

  /// Returns when an event is pending, after `ring`, or after the time limit.
  func wait(atMost limit: Duration) {
    // `poll` ignores a negative descriptor.
    var places = [descriptor, wakeup.read].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let milliseconds = max(0, min(Quantity.seconds(limit) * 1000 + 1, 3_600_000))
    if poll(&places, 2, Int32(milliseconds)) > 0, places[1].revents != 0 {
      var bytes = [UInt8](repeating: 0, count: 64)
      while Platform.read(wakeup.read, &bytes, bytes.count) == bytes.count {}
    }
  }

  /// Ends the current or the next `wait`. Thread-safe.
  func ring() {
    var byte: UInt8 = 1
    // If the pipe is full, it already wakes the reader.
    _ = write(wakeup.write, &byte, 1)
  }
}

#if os(Linux)
  extension FolderEvent {
    fileprivate init(_ event: inotify_event, _ name: BytePath) {
      func says(_ bits: Int32) -> Bool { event.mask & UInt32(bitPattern: bits) != 0 }
      kind =
        if says(IN_Q_OVERFLOW) {
          .lost
        } else if says(IN_IGNORED) {
          .ended
        } else if says(IN_MOVED_FROM) {
          .movedAway
        } else if says(IN_MOVE_SELF) {
          .moved
        } else if says(IN_MODIFY) {
          .written
        } else if says(IN_CLOSE_WRITE | IN_MOVED_TO) {
          .closed
        } else {
          .appeared
        }
      watch = event.wd
      self.name = name
      isOfFolder = says(IN_ISDIR)
    }
  }
#endif
