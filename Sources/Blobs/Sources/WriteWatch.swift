#if os(Linux)
  import Platform

  /// Confirms that nobody has written to an open file, whatever its times say, based on the kernel's inotify events.
  ///
  /// A rename is the only change of a file's change time without an event here. A write through a mapping has no event
  /// either, but it changes the modification time, because dirty pages were written back when the file was opened
  /// (`OpenFile.writeBack`). Restoring the modification time has an event, which looks the same as a change of
  /// permissions or links. In that case, the content counts as unchanged only if nobody has had the file open for
  /// writing from the beginning to the end.
  final class WriteWatch: Sendable {
    private let descriptor: Int32
    private let number: Int32
    /// Events up to this count happened before this watch.
    private let start: UInt64

    /// Returns nil if the system does not report events. Borrows `descriptor`.
    init?(_ descriptor: Int32) {
      guard let (number, start) = InotifyQueue.shared?.begin(descriptor) else { return nil }
      self.descriptor = descriptor
      self.number = number
      self.start = start
    }

    deinit { InotifyQueue.shared?.end(number) }

    /// True only if it is certain that nobody wrote. The caller has checked that the modification time is unchanged.
    var hasSeenNoWrite: Bool {
      guard let events = InotifyQueue.shared?.events(of: number) else { return false }
      if events.lastWrite > start { return false }
      return events.lastAttribute <= start || fb_is_written(descriptor) == 0
    }
  }

  /// The kernel's events for single files: one inotify queue for the process, read on demand.
  private final class InotifyQueue: Sendable {
    struct FileEvents {
      var lastWrite: UInt64 = 0
      var lastAttribute: UInt64 = 0
      var users = 0
    }
    fileprivate struct State {
      var files: [Int32: FileEvents] = [:]
      /// The number of events so far.
      var count: UInt64 = 0
    }

    static let shared = InotifyQueue()
    private let queue: Int32
    private let state = Monitor(State())

    private init?() {
      queue = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
      if queue < 0 { return nil }
    }

    func begin(_ descriptor: Int32) -> (number: Int32, start: UInt64)? {
      state.update(waking: .none) { state in
        let number = "/proc/self/fd/\(descriptor)".withCString {
          inotify_add_watch(queue, $0, UInt32(IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB))
        }
        if number < 0 { return nil }
        state.files[number, default: FileEvents()].users += 1
        // Reads pending events, which belong to earlier watches of the same file.
        read(&state)
        return (number, state.count)
      }
    }

    func end(_ number: Int32) {
      state.update(waking: .none) { state in
        guard var file = state.files[number] else { return }
        file.users -= 1
        state.files[number] = file.users > 0 ? file : nil
        if file.users == 0 { _ = inotify_rm_watch(queue, number) }
      }
    }

    func events(of number: Int32) -> FileEvents? {
      state.update(waking: .none) { state in
        read(&state)
        return state.files[number]
      }
    }

    private func read(_ state: inout State) {
      let header = MemoryLayout<inotify_event>.size
      withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
        while case let count = Platform.read(queue, buffer.baseAddress, buffer.count), count > 0 {
          var offset = 0
          while offset + header <= count {
            let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            state.take(event)
            offset += header + Int(event.len)
          }
        }
      }
    }
  }

  extension InotifyQueue.State {
    fileprivate mutating func take(_ event: inotify_event) {
      count += 1
      // The queue overflowed and events were lost: any file may have been written to.
      if event.mask & UInt32(IN_Q_OVERFLOW) != 0 {
        for number in files.keys { files[number]!.lastWrite = count }
        return
      }
      guard files[event.wd] != nil else { return }
      // This includes IN_IGNORED, after which no further events come for this file.
      if event.mask & UInt32(IN_ATTRIB) == 0 {
        files[event.wd]!.lastWrite = count
      } else {
        files[event.wd]!.lastAttribute = count
      }
    }
  }
#else
  /// This platform cannot confirm that a file is unchanged.
  final class WriteWatch: Sendable {
    init?(_ descriptor: Int32) { return nil }
    var hasSeenNoWrite: Bool { false }
  }
#endif
