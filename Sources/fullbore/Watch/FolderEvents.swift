#if os(Linux)
  import BlobUpload
  import Blobs
  import Platform

  /// An inotify event for a name in a watched folder.
  struct InotifyEvent: Sendable, Hashable {
    /// The watch descriptor; -1 if events were lost.
    let watch: Int32
    let name: BytePath
    let mask: UInt32

    func says(_ bits: Int32) -> Bool { mask & UInt32(bitPattern: bits) != 0 }
    var isOfFolder: Bool { says(IN_ISDIR) }
  }

  /// An inotify instance, with a pipe that ends a wait.
  final class Inotify: Sendable {
    private let descriptor: Int32
    private let bell: (read: Int32, write: Int32)

    init() throws(UploadError) {
      descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
      if descriptor < 0 {
        let hint = errno == EMFILE ? " (the limits are ulimit -n and fs.inotify.max_user_instances)" : ""
        throw UploadError(.giveUp, .source, "inotify: \(String(cString: strerror(errno)))\(hint)")
      }
      bell = makePipe()
      for end in [bell.read, bell.write] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    }

    deinit { for descriptor in [descriptor, bell.read, bell.write] { close(descriptor) } }

    /// Returns the watch descriptor, which is the existing one if the folder is already watched; negative on failure,
    /// with the reason in `errno`.
    func add(_ folder: BytePath, follow: Bool) -> Int32 {
      var mask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR | IN_EXCL_UNLINK
      if !follow { mask |= IN_DONT_FOLLOW }
      return folder.withCString { inotify_add_watch(descriptor, $0, UInt32(bitPattern: mask)) }
    }

    func remove(_ watch: Int32) { _ = inotify_rm_watch(descriptor, watch) }

    /// Calls `body` for all pending events in order. Does not wait.
    func read(_ body: (InotifyEvent) -> Void) {
      let header = MemoryLayout<inotify_event>.size
      withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { buffer in
        while case let count = Platform.read(descriptor, buffer.baseAddress, buffer.count), count > 0 {
          var offset = 0
          while offset + header <= count {
            let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let name = buffer[(offset + header)..<(offset + header + Int(event.len))].prefix { $0 != 0 }
            body(InotifyEvent(watch: event.wd, name: BytePath(name), mask: event.mask))
            offset += header + Int(event.len)
          }
        }
      }
    }

    /// Returns when an event is pending, after `ring`, or after the time limit.
    func wait(atMost limit: Duration) {
      var places = [descriptor, bell.read].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      let milliseconds = max(0, min(Quantity.seconds(limit) * 1000 + 1, 3_600_000))
      if poll(&places, 2, Int32(milliseconds)) > 0, places[1].revents != 0 {
        var bytes = [UInt8](repeating: 0, count: 64)
        while Platform.read(bell.read, &bytes, bytes.count) == bytes.count {}
      }
    }

    /// Ends the current or the next `wait`. Thread-safe.
    func ring() {
      var byte: UInt8 = 1
      // If the pipe is full, it already wakes the reader.
      _ = write(bell.write, &byte, 1)
    }
  }

  /// Whether a process has a file open for writing.
  enum Writers: Sendable {
    case none, some
    /// The system does not report this for files of other users, and on some file systems.
    case unknown

    /// Checks the file at `path` now.
    init(of path: BytePath) {
      let descriptor = path.open(O_RDONLY | O_NONBLOCK)
      // The error is reported when the file is read.
      if descriptor < 0 {
        self = .none
        return
      }
      defer { close(descriptor) }
      self =
        switch fb_is_written(descriptor) {
        case 0: .none
        case 1: .some
        default: .unknown
        }
    }
  }
#endif
