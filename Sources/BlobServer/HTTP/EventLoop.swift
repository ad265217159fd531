import BlobHTTP
import Blobs
import Platform
import Synchronization

/// A thread that serves many connections. It does no slow work: workers do that, and post their decisions.
final class EventLoop: @unchecked Sendable {
  // Everything but `inbox`, `places` and `isRunning` belongs to the thread.
  enum Message: Sendable {
    case accepted(Descriptor)
    case decided(Connection, Plan)
    case resumed(Connection)
    /// The files of a closed connection are closed, so that there is a place for another one.
    case released
    /// A client waits for a place, and the other loop has none.
    case crowded
    /// The listening socket is about to be closed.
    case stopAccepting
    /// All connections close, and the thread ends after the last of them.
    case cut
  }

  let handler: RequestHandler
  let poller: Poller
  let limits: ConnectionTimer.Limits
  let buffers = LoopBuffers()
  private(set) var clock: LoopClock
  private(set) var isCutting = false
  private var acceptor: Acceptor
  private var connections: ConnectionTable
  /// Includes the places of connections that the other loop has accepted for this one.
  private let places: ConnectionPlaces
  /// Another event loop, which serves new connections while it has fewer than this one.
  weak var other: EventLoop?

  private let inbox = Mutex<[Message]>([])
  private let isRunning = Monitor(false)

  /// - `most`: maximum number of connections.
  /// - `mostLingering`: how many of them may stay open after their last response.
  /// - `counters`: nil for those of the service.
  init(
    _ service: Service, _ listener: Descriptor, _ tls: TLSContext?, most: Int, mostLingering: Int,
    counters: Counters? = nil, route: @escaping RequestHandler.Route = Router.plan
  ) throws(ServerError) {
    guard let poller = Poller() else { throw failed("watch", "connections") }
    self.poller = poller
    handler = RequestHandler(service, counters ?? service.counters, route: route)
    acceptor = Acceptor(listener, poller, tls)
    connections = ConnectionTable(mostLingering: mostLingering)
    places = ConnectionPlaces(most)
    let options = service.options
    limits = .init(idle: options.idleTimeout, head: options.headTimeout, bytesPerSecond: options.minimumRate)
    clock = LoopClock(checksEvery: limits.interval)
  }

  /// The number of connections that are open or about to be served.
  var connectionCount: Int { places.countReserved }

  func start() {
    isRunning.update { $0 = true }
    SystemThread.start("fullbore-serve") {
      self.run()
      self.isRunning.update { $0 = false }
    }
  }

  func post(_ message: Message) {
    let isFirst = inbox.withLock { inbox in
      inbox.append(message)
      return inbox.count == 1
    }
    if isFirst { poller.wake() }
  }

  /// Blocks until the thread has ended, which requires a `cut` message.
  func join() { isRunning.wait { $0 ? nil : () } }

  // MARK: Called by connections

  /// `hasFiles`: a worker closes the files that the connection was receiving. Its place counts files too, so it is free
  /// only after that.
  func forget(_ connection: Connection, hasFiles: Bool) {
    if !connections.remove(connection) { return }
    handler.counters.connections.add(-1)
    // Workers start what they are given in order.
    if hasFiles { handler.service.workers.submit { [self] in post(.released) } } else { released() }
  }

  private func released() {
    places.release()
    acceptor.listen()
  }

  /// Calls `goOn` after other connections have had their turn.
  func goOnLater(with connection: Connection) { connections.addUnread(connection) }

  /// If too many connections linger, the oldest one is closed.
  func lingers(_ connection: Connection) { connections.addLingering(connection)?.close() }

  /// Whether connections must close after their response, so that a waiting client gets a place.
  var isCrowded: Bool { acceptor.isCrowded }

  /// The value of the `Date` header field.
  var date: String? { clock.date() }

  // MARK: The thread

  private func run() {
    acceptor.listen()
    while !isCutting || !connections.isEmpty {
      poller.wait(milliseconds: connections.hasUnread ? 0 : untilTurn) { event in
        clock.tick()
        if event.tag == Acceptor.tag { accept() } else { connections[event.tag]?.advance(event) }
      }
      clock.tick()
      for connection in connections.takeUnread() { connection.goOn() }
      for message in inbox.withLock({ inbox in
        defer { inbox = [] }
        return inbox
      }) { take(message) }
      sweep()
    }
  }

  private func take(_ message: Message) {
    switch message {
    case .accepted(let socket): serve(socket)
    case .decided(let connection, let plan): connection.decided(plan)
    case .resumed(let connection): connection.resume()
    case .released: released()
    case .crowded:
      // The socket is added again below, because the poller may have reported the waiting client to the other loop only.
      acceptor.pause()
      if closeIdle() { acceptor.listen() } else { acceptor.pause(crowded: clock.now) }
    case .stopAccepting: acceptor.end()
    case .cut:
      isCutting = true
      for connection in connections.all { connection.cut() }
    }
  }

  /// The time until something must be done that no event causes, in milliseconds.
  private var untilTurn: Int32 {
    if connections.isEmpty, acceptor.needsNoTurn { return -1 }
    let next = min(clock.nextSweep, acceptor.nextTurn ?? clock.nextSweep)
    let left = (next - .now).components
    return Int32(clamping: max(0, left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1))
  }

  private func sweep() {
    if let turn = acceptor.nextTurn, clock.now >= turn { acceptor.listen() }
    let pause = clock.now - clock.nextSweep
    if pause < .zero { return }
    // The process was stopped, or the machine slept. Requests may have arrived that were not read yet.
    if pause > Self.leastPause {
      for connection in connections.all { connection.timer.extend(by: pause, since: clock.swept) }
    }
    clock.noteSweep()
    for connection in connections.all { connection.check() }
    acceptor.listen()
  }

  // MARK: Accepting

  private func accept() {
    if !acceptor.isOpen { return }
    guard let loop = reserve() else { return makeRoom() }
    let number = acceptor.accept()
    if number < 0 {
      let errno = errno
      loop.places.release()
      if errno == EAGAIN || errno == EINTR || errno == ECONNABORTED { return }
      return acceptor.pause()  // no descriptor is available
    }
    let socket = Descriptor(number)
    if loop === self { serve(socket) } else { loop.post(.accepted(socket)) }
  }

  /// Reserves a place for a connection before it is accepted, so that another thread cannot take the place. Returns the
  /// event loop that will serve it: the one with fewer connections. nil: both are full.
  private func reserve() -> EventLoop? {
    guard let other else { return places.reserve() ? self : nil }
    let isOtherFirst = other.places.countReserved < places.countReserved
    return (isOtherFirst ? [other, self] : [self, other]).first { $0.places.reserve() }
  }

  /// If no connection of this loop can be closed, the other loop looks for one, and this one waits until one has ended.
  private func makeRoom() {
    if closeIdle() { return }
    acceptor.pause(crowded: clock.now)
    other?.post(.crowded)
  }

  /// Closes the connection that is least needed. Returns false if each of them is needed.
  private func closeIdle() -> Bool {
    guard let connection = connections.leastNeeded(at: clock.now) else { return false }
    connection.close()
    return true
  }

  /// A busy machine may delay the loop by less.
  private static let leastPause = Duration.seconds(2)

  /// Serves a connection whose place was reserved.
  private func serve(_ socket: Descriptor) {
    guard !isCutting, let stream = acceptor.stream(of: socket) else { return places.release() }
    let connection = Connection(stream, tag: connections.newTag(), self)
    connections.add(connection)
    handler.counters.connections.add(1)
    connection.start()
  }
}

/// The buffers with which an event loop moves bytes. Their content is valid until the next call that uses them.
struct LoopBuffers: ~Copyable {
  let received = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
  /// Bytes of files to send.
  let file = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4096)
  /// nil if the system has no suitable pipes.
  let pipe = SplicePipe()

  deinit {
    received.deallocate()
    file.deallocate()
  }
}
