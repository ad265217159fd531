/// Waits for events on many descriptors at once; any thread can wake it. Events carry the tag of their descriptor.
///
/// It uses epoll on Linux and kqueue on Apple's systems. With kqueue, one descriptor may have two events in one `wait`:
/// the second may be of a kind that the first one's handler no longer watches for.
package final class Poller: Sendable {
  package struct Interest: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let read = Interest(rawValue: 1)
    package static let write = Interest(rawValue: 2)
    /// If several pollers watch the descriptor, not all of them are woken, if the system supports it.
    package static let shared = Interest(rawValue: 4)
  }

  package struct Event {
    package let tag: UInt64
    package let isReadable: Bool
    package let isWritable: Bool
    /// The connection is unusable for sending: the peer has reset it, or both sides have closed it.
    package let isBroken: Bool
  }

  #if os(Linux)
    private let epoll: Int32
    private let wakeup: Int32
    private static let wakeupTag = UInt64.max

    package init?() {
      epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
      wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
      if epoll < 0 || wakeup < 0 || !add(wakeup, .read, tag: Self.wakeupTag) { return nil }
    }

    deinit {
      if epoll >= 0 { close(epoll) }
      if wakeup >= 0 { close(wakeup) }
    }

    package func add(_ descriptor: Int32, _ interest: Interest, tag: UInt64) -> Bool {
      control(EPOLL_CTL_ADD, descriptor, interest, tag)
    }

    @discardableResult
    package func change(_ descriptor: Int32, _ interest: Interest, tag: UInt64) -> Bool {
      control(EPOLL_CTL_MOD, descriptor, interest, tag)
    }

    package func remove(_ descriptor: Int32) { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }

    private func control(_ operation: Int32, _ descriptor: Int32, _ interest: Interest, _ tag: UInt64) -> Bool {
      var events: UInt32 = 0
      if interest.contains(.read) { events |= EPOLLIN.rawValue }
      if interest.contains(.write) { events |= EPOLLOUT.rawValue }
      if interest.contains(.shared) { events |= EPOLLEXCLUSIVE.rawValue }
      var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
      return epoll_ctl(epoll, operation, descriptor, &event) == 0
    }

    /// Passes pending events to `take`, after waiting at most `milliseconds`; negative: without limit. Only one thread
    /// calls it.
    package func wait(milliseconds: Int32, _ take: (Event) -> Void) {
      withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 64) { events in
        let count = epoll_wait(epoll, events.baseAddress, Int32(events.count), milliseconds)
        for index in 0..<max(0, Int(count)) {
          let (bits, tag) = (events[index].events, events[index].data.u64)
          if tag == Self.wakeupTag {
            var signals: UInt64 = 0
            _ = read(wakeup, &signals, 8)
            continue
          }
          take(
            Event(
              tag: tag, isReadable: bits & EPOLLIN.rawValue != 0, isWritable: bits & EPOLLOUT.rawValue != 0,
              isBroken: bits & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0))
        }
      }
    }

    /// Ends the current or the next `wait`. Any thread may call it.
    package func wake() {
      var one: UInt64 = 1
      _ = write(wakeup, &one, 8)
    }
  #else
    private let queue: Int32
    /// The event of `wake`. Its number is that of no descriptor's filter, because the filter is another one.
    private static let wakeup: UInt = 0

    package init?() {
      queue = kqueue()
      if queue < 0 { return nil }
      _ = fcntl(queue, F_SETFD, FD_CLOEXEC)
      let signal = KernelEvent(Self.wakeup, EVFILT_USER, EV_ADD | EV_CLEAR)
      if !Self.submit([signal], to: queue) { return nil }
    }

    deinit { if queue >= 0 { close(queue) } }

    package func add(_ descriptor: Int32, _ interest: Interest, tag: UInt64) -> Bool {
      // Both filters always exist, so that a change needs to know nothing of the interest before it.
      func action(_ wanted: Interest) -> Int32 { EV_ADD | (interest.contains(wanted) ? EV_ENABLE : EV_DISABLE) }
      let number = UInt(descriptor)
      return Self.submit(
        [
          KernelEvent(number, EVFILT_READ, action(.read), tag), KernelEvent(number, EVFILT_WRITE, action(.write), tag),
        ], to: queue)
    }

    @discardableResult
    package func change(_ descriptor: Int32, _ interest: Interest, tag: UInt64) -> Bool {
      add(descriptor, interest, tag: tag)
    }

    package func remove(_ descriptor: Int32) {
      for filter in [EVFILT_READ, EVFILT_WRITE] {
        _ = Self.submit([KernelEvent(UInt(descriptor), filter, EV_DELETE)], to: queue)
      }
    }

    private static func submit(_ changes: [KernelEvent], to queue: Int32) -> Bool {
      kevent(queue, changes, Int32(changes.count), nil, 0, nil) == 0
    }

    /// Passes pending events to `take`, after waiting at most `milliseconds`; negative: without limit. Only one thread
    /// calls it.
    package func wait(milliseconds: Int32, _ take: (Event) -> Void) {
      withUnsafeTemporaryAllocation(of: KernelEvent.self, capacity: 64) { events in
        var limit = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        let count =
          milliseconds < 0
          ? kevent(queue, nil, 0, events.baseAddress, Int32(events.count), nil)
          : kevent(queue, nil, 0, events.baseAddress, Int32(events.count), &limit)
        for event in events.prefix(max(0, Int(count))) where event.filter != Int16(EVFILT_USER) {
          let isEnd = event.flags & UInt16(EV_EOF) != 0
          let isWriting = event.filter == Int16(EVFILT_WRITE)
          take(
            Event(
              tag: UInt64(UInt(bitPattern: event.udata)), isReadable: !isWriting, isWritable: isWriting,
              // After the peer's end of sending alone, only reading is at its end, without an error.
              isBroken: isEnd && (isWriting || event.fflags != 0)))
        }
      }
    }

    /// Ends the current or the next `wait`. Any thread may call it.
    package func wake() {
      _ = Self.submit([KernelEvent(Self.wakeup, EVFILT_USER, 0, fflags: NOTE_TRIGGER)], to: queue)
    }
  #endif
}

#if !os(Linux)
  private typealias KernelEvent = kevent

  extension KernelEvent {
    /// `number`: the descriptor. The kernel keeps the tag as if it were a pointer.
    fileprivate init(_ number: UInt, _ filter: Int32, _ action: Int32, _ tag: UInt64 = 0, fflags: Int32 = 0) {
      self.init(
        ident: number, filter: Int16(filter), flags: UInt16(action), fflags: UInt32(fflags), data: 0,
        udata: UnsafeMutableRawPointer(bitPattern: UInt(tag)))
    }
  }
#endif
