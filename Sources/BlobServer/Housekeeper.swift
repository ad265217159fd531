import Blobs
import Platform
import Synchronization

/// What is done again and again. `work` must be short.
struct Chore: Sendable {
  let interval: Duration
  let work: @Sendable () -> Void

  init(every interval: Duration, _ work: @escaping @Sendable () -> Void) {
    self.interval = interval
    self.work = work
  }
}

/// One thread for what only waits: the clock of its chores, and sockets whose client may still be sending.
///
/// A socket that is closed with unread bytes is reset, and the client may lose the refusal it was sent. So it lingers:
/// what comes is thrown away until the client closes, five seconds at most. RFC 9112 §9.6.
final class Housekeeper: Sendable {
  private struct State {
    var arrived: [Descriptor] = []
    var isStopped = false
    var isRunning = false
  }
  private let state = Monitor(State())
  private let wake: (reader: Descriptor, writer: Descriptor)

  init() throws(ServerError) {
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) != 0 { throw failed("make a pipe", "to wake the housekeeper") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    wake = (Descriptor(ends[0]), Descriptor(ends[1]))
  }

  /// Does the chores on the housekeeper's thread.
  func start(_ chores: [Chore]) {
    state.update { $0.isRunning = true }
    SystemThread.start("fullbore-house") { self.run(chores) }
  }

  /// Takes the socket and closes it when its client has read what it was told, or did not for too long.
  func linger(_ socket: Descriptor) {
    state.update { $0.arrived.append(socket) }
    wakeUp()
  }

  /// Ends what is sent to the client, and lingers.
  func close(_ socket: Descriptor) {
    shutdown(socket.number, shutWriting)
    linger(socket)
  }

  /// Blocks until the thread has ended.
  func stop() {
    state.update { $0.isStopped = true }
    wakeUp()
    state.wait { $0.isRunning ? nil : () }
  }

  private func wakeUp() { _ = write(wake.writer.number, "w", 1) }

  private func run(_ chores: [Chore]) {
    let clock = ContinuousClock()
    var due = chores.map { clock.now + $0.interval }
    var lingering: [(socket: Descriptor, until: ContinuousClock.Instant)] = []
    while true {
      let (arrived, isStopped) = state.update { state in
        defer { state.arrived = [] }
        return (state.arrived, state.isStopped)
      }
      if isStopped { break }
      lingering += arrived.map { ($0, clock.now + .seconds(5)) }
      var polled = ([wake.reader] + lingering.map(\.socket)).map {
        pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0)
      }
      let until = (lingering.map(\.until) + due).min() ?? clock.now + .seconds(60)
      poll(&polled, nfds_t(polled.count), until.milliseconds(from: clock.now))
      if polled[0].revents != 0 { Self.drain(wake.reader) }
      let now = clock.now
      lingering = zip(lingering, polled.dropFirst()).filter { entry, poll in
        now < entry.until && (poll.revents == 0 || Self.throwAway(entry.socket))
      }.map(\.0)
      for (number, chore) in chores.enumerated() where now >= due[number] {
        chore.work()
        due[number] = now + chore.interval
      }
    }
    state.update { $0.isRunning = false }
  }

  private static func drain(_ pipe: Descriptor) {
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { while read(pipe.number, $0.baseAddress!, 64) == 64 {} }
  }

  /// False at the end of the stream.
  private static func throwAway(_ socket: Descriptor) -> Bool {
    let count = withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) {
      recv(socket.number, $0.baseAddress!, $0.count, doNotWait)
    }
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))
  }
}

extension ContinuousClock.Instant {
  /// For `poll`: never negative, rounded up.
  fileprivate func milliseconds(from now: Self) -> Int32 {
    let left = (self - now).components
    return Int32(clamping: max(0, min(left.seconds, 3600) * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1))
  }
}

#if os(Linux)
  private let shutWriting = Int32(SHUT_WR)
#else
  private let shutWriting = SHUT_WR
#endif
