/// Waits for events on many descriptors at once; any thread can wake it. Events carry the tag of their descriptor.
///
/// It uses epoll on Linux. On other systems `init` returns nil and sets `errno` to ENOSYS.
package final class Poller: Sendable {
  package struct Interest: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let read = Interest(rawValue: 1)
    package static let write = Interest(rawValue: 2)
    /// If several pollers watch the descriptor, not all of them are woken.
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
    package init?() {
      errno = ENOSYS
      return nil
    }

    package func add(_ descriptor: Int32, _ interest: Interest, tag: UInt64) -> Bool { false }
    @discardableResult
    package func change(_ descriptor: Int32, _ interest: Interest, tag: UInt64) -> Bool { false }
    package func remove(_ descriptor: Int32) {}
    package func wait(milliseconds: Int32, _ take: (Event) -> Void) {}
    package func wake() {}
  #endif
}
