import Blobs
import Platform
import Synchronization

/// A large body that has been taken from libmicrohttpd together with its connection.
final class PumpedBody: Sendable {
  let socket: Descriptor
  let receiver: any BodyReceiver
  /// Bytes that the socket has yet to bring.
  let length: Int64
  /// Called once, on the pump's thread, so never slow.
  let ended: @Sendable (Outcome) -> Void

  enum Outcome {
    case whole(Plan)
    case refused(ServerError)
    /// The connection broke, or brought nothing for too long: there is nobody to answer.
    case broken
  }

  init(
    _ socket: Descriptor, _ receiver: any BodyReceiver, length: Int64, ended: @escaping @Sendable (Outcome) -> Void
  ) {
    self.socket = socket
    self.receiver = receiver
    self.length = length
    self.ended = ended
  }
}

#if os(Linux)
  /// Moves large bodies from sockets to files on one thread, through a pipe of the kernel's.
  ///
  /// libmicrohttpd reads into memory that each connection has for itself, so it is either small, which costs time, or
  /// large, which costs memory. Here one pipe serves them all, and the bytes do not pass through the process.
  final class BodyPump: Sendable {
    /// What a body must have left to come, for the change of hands to be worth it.
    static let threshold: Int64 = 256 << 10

    private struct Entry {
      let body: PumpedBody
      var left: Int64
      var touched = MonotonicClock().now
    }
    private struct State {
      var entries: [Int32: Entry] = [:]
      var isStopped = false
    }
    private let state = Mutex(State())
    private let running = Monitor(false)
    private let epoll: Descriptor
    private let wake: Descriptor
    private let idle: Duration
    private let pipe: Pipe

    /// `idle`: how long a body may bring nothing before its connection is closed.
    init(idle: Duration) throws(ServerError) {
      self.idle = idle
      pipe = try Pipe()
      epoll = Descriptor(epoll_create1(Int32(EPOLL_CLOEXEC)))
      wake = Descriptor(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)))
      if epoll.number < 0 || wake.number < 0 || !watch(wake.number) {
        throw failed("watch", "sockets for large bodies")
      }
    }

    func start() {
      running.update { $0 = true }
      SystemThread.start("fullbore-pump") {
        self.run()
        self.running.update { $0 = false }
      }
    }

    /// False when it is stopped: nothing was done.
    func take(_ body: PumpedBody) -> Bool {
      let number = body.socket.number
      let isTaken = state.withLock { state in
        if state.isStopped { return false }
        state.entries[number] = Entry(body: body, left: body.length)
        return true
      }
      guard isTaken else { return false }
      if !watch(number) { cut(number) }
      signal()
      return true
    }

    /// Cuts every body and ends the thread. Blocks until then.
    func stop() {
      state.withLock { $0.isStopped = true }
      signal()
      running.wait { $0 ? nil : () }
    }

    private func watch(_ number: Int32) -> Bool {
      var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(fd: number))
      return epoll_ctl(epoll.number, EPOLL_CTL_ADD, number, &event) == 0
    }

    private func signal() {
      var one: UInt64 = 1
      _ = write(wake.number, &one, 8)
    }

    // MARK: The thread

    private func run() {
      var events = [epoll_event](repeating: epoll_event(), count: 64)
      var swept = MonotonicClock().now
      while true {
        let hasBodies = state.withLock { !$0.entries.isEmpty }
        let count = epoll_wait(epoll.number, &events, Int32(events.count), hasBodies ? 1000 : -1)
        for event in events.prefix(max(0, Int(count))) where event.data.fd != wake.number {
          advance(event.data.fd)
        }
        var signals: UInt64 = 0
        _ = read(wake.number, &signals, 8)
        if state.withLock({ $0.isStopped }) { return cut { _ in true } }
        let now = MonotonicClock().now
        if now - swept < .seconds(1) { continue }
        swept = now
        cut { now - $0.touched > idle }
      }
    }

    /// Moves what the socket has, a pipe's load at most.
    private func advance(_ number: Int32) {
      guard let entry = state.withLock({ $0.entries[number] }) else { return }
      let count = fb_splice(number, pipe.writer.number, -1, UInt(min(entry.left, Int64(pipe.capacity))))
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      if count <= 0 { return cut(number) }
      do throws(ServerError) {
        try entry.body.receiver.take(.piped(pipe.reader, count: count))
      } catch {
        pipe.empty()
        return end(number) { receiver in
          receiver.cut()
          return .refused(error)
        }
      }
      let left = entry.left - Int64(count)
      if left == 0 { return end(number) { .whole($0.end([:])) } }
      state.withLock { $0.entries[number] = Entry(body: entry.body, left: left) }
    }

    private func cut(_ number: Int32) {
      end(number) { receiver in
        receiver.cut()
        return .broken
      }
    }

    private func cut(where condition: (Entry) -> Bool) {
      for (number, entry) in state.withLock({ $0.entries }) where condition(entry) { cut(number) }
    }

    private func end(_ number: Int32, _ outcome: (any BodyReceiver) -> PumpedBody.Outcome) {
      guard let entry = state.withLock({ $0.entries.removeValue(forKey: number) }) else { return }
      epoll_ctl(epoll.number, EPOLL_CTL_DEL, number, nil)
      entry.body.ended(outcome(entry.body.receiver))
    }
  }

  private struct Pipe: Sendable {
    let reader: Descriptor
    let writer: Descriptor
    let capacity: Int

    init() throws(ServerError) {
      var ends: [Int32] = [-1, -1]
      if pipe(&ends) != 0 { throw failed("make a pipe", "for large bodies") }
      for end in ends {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
      }
      (reader, writer) = (Descriptor(ends[0]), Descriptor(ends[1]))
      // The system may grant less, or what it had.
      capacity = max(Int(fb_set_pipe_size(ends[1], 1 << 20)), 64 << 10)
    }

    /// Throws away what is in it, so that no other body gets it.
    func empty() {
      withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) {
        while read(reader.number, $0.baseAddress!, $0.count) > 0 {}
      }
    }
  }
#else
  /// Elsewhere libmicrohttpd reads every body.
  final class BodyPump: Sendable {
    static let threshold = Int64.max
    init(idle: Duration) {}
    func start() {}
    func take(_ body: PumpedBody) -> Bool { false }
    func stop() {}
  }
#endif
