import BlobHTTP
import Blobs
import Platform
import Synchronization

/// A thread that serves many connections. It does no slow work: workers do that, and post their decisions.
final class EventLoop: @unchecked Sendable {
  // Everything but `inbox`, `connectionCount` and `isRunning` belongs to the thread.
  enum Message: Sendable {
    case accepted(Descriptor)
    case decided(Connection, Plan)
    /// The files of a closed connection are closed, so that there is a place for another one.
    case released
    /// A client waits for a place, and the other loop has none.
    case crowded
    /// The listening socket is about to be closed.
    case stopAccepting
    /// All connections close, and the thread ends after the last of them.
    case cut
  }

  let service: Service
  let counters: Counters
  /// Decides about each request.
  let route: Route
  typealias Route = @Sendable (Request, Service) -> Plan
  let poller: Poller
  let limits: ConnectionTimer.Limits
  /// Buffers for received bytes and for file bytes to send; their content is valid until the next call that uses them.
  let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
  let fileRoom = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4096)
  /// nil if the system has no suitable pipes.
  let pipe = SplicePipe()
  private(set) var now = ContinuousClock.now
  private(set) var isCutting = false
  /// When a client last found no place, and no connection that could be closed for it; nil: none waits.
  private var crowded: ContinuousClock.Instant?

  private let tls: TLSContext?
  private let listener: Descriptor
  private let most: Int
  private let mostLingering: Int
  /// Another event loop, which serves new connections while it has fewer than this one.
  weak var other: EventLoop?

  private var connections: [UInt64: Connection] = [:]
  private var latest = EventLoop.listenerTag
  private var unread: [Connection] = []
  private var lingering: [Connection] = []
  private var accepts = true
  private var listens = false
  private var swept = ContinuousClock.now
  private var dated: (second: Int64, text: String?) = (0, nil)

  private let inbox = Mutex<[Message]>([])
  /// Connections of this loop, including those that the other loop has accepted for it.
  let connectionCount = Atomic(0)
  private let isRunning = Monitor(false)

  private static let listenerTag: UInt64 = 0

  /// - `most`: maximum number of connections.
  /// - `mostLingering`: how many of them may stay open after their last response.
  /// - `counters`: nil for those of the service.
  init(
    _ service: Service, _ listener: Descriptor, _ tls: TLSContext?, most: Int, mostLingering: Int,
    counters: Counters? = nil, route: @escaping Route = Router.plan
  ) throws(ServerError) {
    guard let poller = Poller() else { throw failed("watch", "connections") }
    self.poller = poller
    self.service = service
    self.counters = counters ?? service.counters
    self.route = route
    self.listener = listener
    self.tls = tls
    self.most = most
    self.mostLingering = mostLingering
    let options = service.options
    limits = .init(idle: options.idleTimeout, head: options.headTimeout, bytesPerSecond: options.minimumRate)
  }

  deinit {
    room.deallocate()
    fileRoom.deallocate()
  }

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
    if connections.removeValue(forKey: connection.tag) == nil { return }
    counters.connections.add(-1)
    if let index = lingering.firstIndex(where: { $0 === connection }) { lingering.remove(at: index) }
    // Workers start what they are given in order.
    if hasFiles { service.workers.submit { [self] in post(.released) } } else { released() }
  }

  private func released() {
    release()
    listen()
  }

  /// Calls `goOn` after other connections have had their turn.
  func goOnLater(with connection: Connection) { unread.append(connection) }

  /// If too many connections linger, the oldest one is closed.
  func lingers(_ connection: Connection) {
    lingering.append(connection)
    if lingering.count > mostLingering { lingering[0].close() }
  }

  /// Whether connections must close after their response, so that a waiting client gets a place.
  var isCrowded: Bool { crowded != nil }

  /// The value of the `Date` header field.
  var date: String? {
    let second = wallClock() / 1_000_000_000
    if second != dated.second { dated = (second, HTTPDate.text(second * 1_000_000_000)) }
    return dated.text
  }

  // MARK: The thread

  private func run() {
    listen()
    while !isCutting || !connections.isEmpty {
      poller.wait(milliseconds: unread.isEmpty ? untilTurn : 0) { event in
        now = .now
        if event.tag == Self.listenerTag { accept() } else { connections[event.tag]?.advance(event) }
      }
      now = .now
      let again = unread
      unread = []
      for connection in again { connection.goOn() }
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
    case .released: released()
    case .crowded:
      // The socket is added again below, because the poller may have reported the waiting client to the other loop only.
      stopListening()
      if closeIdle() { listen() } else { crowded = now }
    case .stopAccepting:
      accepts = false
      stopListening()
    case .cut:
      isCutting = true
      for connection in connections.values { connection.cut() }
    }
  }

  /// The time until something must be done that no event causes, in milliseconds.
  private var untilTurn: Int32 {
    if connections.isEmpty, listens || !accepts { return -1 }
    let next = min(swept + limits.interval, crowded.map { $0 + Self.crowdedTurn } ?? swept + limits.interval)
    let left = (next - .now).components
    return Int32(clamping: max(0, left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1))
  }

  private func sweep() {
    if let crowded, now - crowded >= Self.crowdedTurn { listen() }
    if now - swept < limits.interval { return }
    // The process was stopped, or the machine slept. Requests may have arrived that were not read yet.
    let pause = now - swept - limits.interval
    if pause > Self.leastPause {
      for connection in connections.values { connection.timer.extend(by: pause, since: swept) }
    }
    swept = now
    for connection in connections.values { connection.check() }
    listen()
  }

  // MARK: Accepting

  /// Listens also while there is no place: a client that then comes gets the place of a connection that is not needed.
  private func listen() {
    if listens || !accepts { return }
    crowded = nil
    listens = poller.add(listener.number, [.read, .shared], tag: Self.listenerTag)
  }

  private func accept() {
    if !accepts { return }
    guard let loop = reserve() else { return makeRoom() }
    let number = Socket.accept(listener.number)
    if number < 0 {
      let errno = errno
      loop.release()
      if errno == EAGAIN || errno == EINTR || errno == ECONNABORTED { return }
      return stopListening()  // no descriptor is available
    }
    let socket = Descriptor(number)
    if loop === self { serve(socket) } else { loop.post(.accepted(socket)) }
  }

  /// Reserves a place for a connection before it is accepted, so that another thread cannot take the place. Returns the
  /// event loop that will serve it: the one with fewer connections. nil: both are full.
  private func reserve() -> EventLoop? {
    guard let other else { return reservesOne() ? self : nil }
    let isOtherFirst =
      other.connectionCount.load(ordering: .relaxed) < connectionCount.load(ordering: .relaxed)
    return (isOtherFirst ? [other, self] : [self, other]).first { $0.reservesOne() }
  }

  private func reservesOne() -> Bool {
    var count = connectionCount.load(ordering: .relaxed)
    while count < most {
      let (isDone, current) = connectionCount.weakCompareExchange(
        expected: count, desired: count + 1, ordering: .relaxed)
      if isDone { return true }
      count = current
    }
    return false
  }

  private func release() { connectionCount.subtract(1, ordering: .relaxed) }

  /// If no connection of this loop can be closed, the other loop looks for one, and this one waits until one has ended.
  private func makeRoom() {
    if closeIdle() { return }
    stopListening()
    crowded = now
    other?.post(.crowded)
  }

  /// Closes the connection that is least needed. Returns false if each of them is needed.
  private func closeIdle() -> Bool {
    let idle = connections.values.compactMap { connection in
      connection.timer.yieldsFrom.map { (connection, from: $0) }
    }
    guard let (connection, from) = idle.min(by: { $0.from < $1.from }), from <= now, connection.mayYield else {
      return false
    }
    connection.close()
    return true
  }

  /// A busy machine may delay the loop by less.
  private static let leastPause = Duration.seconds(2)

  /// How often to look for a connection that can be closed while a client waits.
  private static let crowdedTurn = Duration.milliseconds(100)

  /// Stops accepting until a connection of this loop has ended, or may have become idle.
  private func stopListening() {
    if listens { poller.remove(listener.number) }
    listens = false
  }

  /// Serves a connection whose place was reserved.
  private func serve(_ socket: Descriptor) {
    if isCutting { return release() }
    let session = tls.map { $0.session(on: socket.number) }
    if case .some(nil) = session { return release() }  // out of memory
    latest += 1
    let connection = Connection(ClientStream(socket, session ?? nil), tag: latest, self)
    connections[latest] = connection
    counters.connections.add(1)
    connection.start()
  }
}
