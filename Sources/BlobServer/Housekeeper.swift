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

/// One thread for what only waits: the clock of its chores, answers that a client has yet to take, and sockets whose client
/// may still be sending.
///
/// A socket that is closed with unread bytes is reset, and the client may lose the refusal it was sent. So it lingers:
/// what comes is thrown away until the client closes, five seconds at most. Where too many linger, the oldest are closed.
/// RFC 9112 §9.6.
final class Housekeeper: Sendable {
  /// A socket that something is waited for from.
  private struct Waiting {
    let socket: Descriptor
    var until: ContinuousClock.Instant
    /// What is left of an answer; nil: the socket lingers.
    var answer: (rest: ArraySlice<UInt8>, then: @Sendable (_ isSent: Bool) -> Void)?
  }
  private struct State {
    var arrived: [Waiting] = []
    var isStopped = false
    var isRunning = false
  }
  private let state = Monitor(State())
  private let wake: (reader: Descriptor, writer: Descriptor)

  private let mostLingering: Int
  private let patience: Duration

  /// `patience`: how long a client may take nothing of its answer.
  init(mostLingering: Int, patience: Duration) throws(ServerError) {
    self.mostLingering = mostLingering
    self.patience = patience
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) != 0 { throw failed("make a pipe", "to wake the housekeeper") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    wake = (Descriptor(ends[0]), Descriptor(ends[1]))
  }

  /// Does the chores on the housekeeper's thread, and tells libmicrohttpd of `ends`.
  func start(_ chores: [Chore], _ ends: StreamEnds) {
    state.update { $0.isRunning = true }
    SystemThread.start("fullbore-house") { self.run(chores, ends) }
  }

  /// Takes the socket and closes it when its client has read what it was told, or did not for too long.
  func linger(_ socket: Descriptor) {
    wait(Waiting(socket: socket, until: .now + .seconds(5)))
  }

  /// Sends an answer, and waits on the housekeeper's thread where the client takes it slowly. `then` is called once, on this
  /// thread or the housekeeper's, when all of it was handed to the system; with false where that cannot be any more.
  func send(_ answer: [UInt8], on socket: Descriptor, then: @escaping @Sendable (_ isSent: Bool) -> Void) {
    var rest = answer[...]
    let isAlive = Self.send(&rest, on: socket)
    if !isAlive || rest.isEmpty { return then(isAlive) }
    wait(Waiting(socket: socket, until: .now + patience, answer: (rest, then)))
  }

  /// Takes off `rest` what the socket takes at once. False where it takes nothing any more.
  private static func send(_ rest: inout ArraySlice<UInt8>, on socket: Descriptor) -> Bool {
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Platform.send(socket.number, $0.baseAddress!, $0.count, doNotWait) }
      if count < 0, errno == EINTR { continue }
      if count < 0 { return errno == EAGAIN }
      rest = rest.dropFirst(count)
    }
    return true
  }

  private func wait(_ waiting: Waiting) {
    state.update { $0.arrived.append(waiting) }
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

  private func run(_ chores: [Chore], _ ends: StreamEnds) {
    let clock = ContinuousClock()
    var due = chores.map { clock.now + $0.interval }
    var waiting: [Waiting] = []
    while true {
      let (arrived, isStopped) = state.update { state in
        defer { state.arrived = [] }
        return (state.arrived, state.isStopped)
      }
      waiting += arrived
      if isStopped { break }
      closeOldest(of: &waiting)
      var polled = [wake.reader, ends.epoll].map { pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0) }
      for entry in waiting {
        let events = Int16(entry.answer == nil ? POLLIN : POLLOUT)
        polled.append(pollfd(fd: entry.socket.number, events: events, revents: 0))
      }
      let until = (waiting.map(\.until) + due + [ends.nextDue].compactMap { $0 }).min() ?? clock.now + .seconds(60)
      poll(&polled, nfds_t(polled.count), until.milliseconds(from: clock.now))
      if polled[0].revents != 0 { Self.drain(wake.reader) }
      let now = clock.now
      ends.tell(now)
      waiting = zip(waiting, polled.dropFirst(2)).compactMap { goOn(with: $0, isReady: $1.revents != 0, now) }
      for (number, chore) in chores.enumerated() where now >= due[number] {
        chore.work()
        due[number] = now + chore.interval
      }
    }
    for entry in waiting { entry.answer?.then(false) }
    state.update { $0.isRunning = false }
  }

  private func closeOldest(of waiting: inout [Waiting]) {
    var excess = waiting.count { $0.answer == nil } - mostLingering
    if excess <= 0 { return }
    waiting.removeAll { entry in
      if entry.answer != nil || excess == 0 { return false }
      excess -= 1
      return true
    }
  }

  /// What is waited for from now on; nil: nothing any more.
  private func goOn(with entry: Waiting, isReady: Bool, _ now: ContinuousClock.Instant) -> Waiting? {
    var entry = entry
    guard var answer = entry.answer else {
      return now < entry.until && (!isReady || Self.throwAway(entry.socket)) ? entry : nil
    }
    let left = answer.rest.count
    let isAlive = !isReady || Self.send(&answer.rest, on: entry.socket)
    if isAlive, !answer.rest.isEmpty, now < entry.until {
      if answer.rest.count < left { entry.until = now + patience }
      entry.answer = answer
      return entry
    }
    answer.then(isAlive && answer.rest.isEmpty)
    return nil
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
