import BlobHTTP
import Blobs
import CCurl
import Platform
import Synchronization

/// Gives each job a worker: an idle one, a new one, or the next that comes free.
///
/// As many are busy at once as `ConcurrencyController` says, which learns from what becomes of them: a server that answers at once is
/// served with least work by a few busy workers, a distant one needs many.
final class ConnectionPool: Sendable {
  private struct State {
    var width: ConcurrencyController
    var waiting = ExchangeQueue()
    /// How often a worker has gone on with something that waited.
    var moved = 0
    /// The most recently used last.
    var idle: [WorkerInbox] = []
    var workers = 0
    /// Those that only connect.
    var connecting: [QueuedExchange] = []
    /// Where requests with bodies will go, and how many at the most, until the first does.
    var expected: (url: HTTPURL, count: Int)?
    /// Of bodies under way, each counted with `ConcurrencyController.mostCounted` at the most.
    var bytesUnderWay: Int64 = 0
    /// Hears of every new width.
    var follower: (@Sendable (Int) -> Void)?

    var active: Int { busy - connecting.count }
    /// Those that connect included.
    var busy: Int { workers - idle.count }

    /// An idle worker for `job`, the one that leads to its server rather than another; nil: there is none.
    mutating func idleLane(for job: QueuedExchange) -> WorkerInbox? {
      guard let index = idle.lastIndex(where: { $0.leads(to: job.request.url) }) ?? idle.indices.last else {
        return nil
      }
      return idle.remove(at: index)
    }

    mutating func ended(_ job: QueuedExchange, _ lesson: ExchangeOutcome) {
      bytesUnderWay -= job.counted
      connecting.removeAll { $0 === job }
      if let piece = lesson.arrived { arrived(piece) }
      if let (began, ended) = lesson.refused { width.refused(from: began, at: ended) }
    }

    mutating func arrived(_ piece: SentPiece) {
      width.arrived(
        piece.bytes, from: piece.began, to: piece.ended, active: active, isWanted: !waiting.isEmpty)
    }

    /// Takes the exchanges that may start now out of the queue, each with an idle worker; nil: a new worker must be started.
    mutating func startable() -> [(QueuedExchange, WorkerInbox?)] {
      var started: [(QueuedExchange, WorkerInbox?)] = []
      while active < width.width, !idle.isEmpty || waiting.count > connecting.count, let job = popFirst() {
        let door = idleLane(for: job)
        if door == nil { workers += 1 }
        started.append((job, door))
      }
      return started
    }

    mutating func popFirst() -> QueuedExchange? {
      let job = waiting.popFirst()
      bytesUnderWay += job?.counted ?? 0
      return job
    }

    /// Workers that are to connect now: as many as will be wanted at once, as far as is known.
    mutating func connections(in pool: ConnectionPool) -> [QueuedExchange] {
      guard let expected, !isClosed else { return [] }
      let wanted = max(1, min(expected.count, width.ahead)) - workers
      let jobs = (0..<max(0, wanted)).map { _ in QueuedExchange(connectingTo: expected.url, in: pool) }
      workers += jobs.count
      connecting += jobs
      return jobs
    }
    /// A thread looks after what waits.
    var isGrowing = false
    var isClosed = false
  }
  let options: SocketTransport.Options
  let proxies: ProxyRules
  // A monitor, where a `Mutex` would do: the thread sanitizer knows what a pthread lock guards.
  private let state: Monitor<State>
  private let buffered = Atomic(0)
  private let hasStirred = Atomic(false)
  private let waiters = Atomic(0)
  /// For a head with a small body, and for the records of such a request.
  let smallBuffers = BufferPool(size: ConnectionWorker.longestHead + Int(ConnectionWorker.smallBody) + (8 << 10))

  /// Origins that have closed a connection while a request was on its way over it.
  private let closers = Mutex<Set<String>>([])
  private let hasClosers = Atomic(false)

  #if os(Linux)
    let context = Mutex<TLSContext?>(nil)
  #endif

  init(_ options: SocketTransport.Options) {
    precondition(Self.libraryIsReady)
    self.options = options
    state = Monitor(
      State(
        width: options.adapts
          ? ConcurrencyController(most: options.connections) : ConcurrencyController(fixed: options.connections)
      ))
    proxies = ProxyRules(options.proxy, environment: options.environment)
  }

  private static let libraryIsReady = curl_global_init(fb_curl_global_all()) == CURLE_OK

  func submit(_ job: QueuedExchange) {
    enum Next { case give(WorkerInbox), start, grow, wait }
    let next: Next = state.update { state in
      if job.onlyConnects { return .start }
      if let body = job.body {
        state.expected = nil
        state.width.begins(isCostly: job.request.url.scheme == "https" && body.isLarge)
      }
      if state.active >= state.width.width { state.width.catchUp(underWay: state.bytesUnderWay) }
      if state.active < state.width.width {
        if let door = state.idleLane(for: job) {
          state.bytesUnderWay += job.counted
          return .give(door)
        }
        if state.connecting.count <= state.waiting.count {
          state.workers += 1
          state.bytesUnderWay += job.counted
          return .start
        }
      }
      state.waiting.append(job)
      if state.isGrowing || !state.width.mayLeap { return .wait }
      state.isGrowing = true
      return .grow
    }
    switch next {
    case .give(let door): door.give(job)
    case .start: start(job)
    case .grow: SystemThread.start("fullbore-grow") { self.grow() }
    case .wait: break
    }
  }

  func remove(_ job: QueuedExchange) { state.update { $0.waiting.remove(job) } }

  /// The exchange that a worker does after `job`. nil: nothing waits, or too many workers are busy; the worker is idle then.
  func next(for door: WorkerInbox, after job: QueuedExchange, _ lesson: ExchangeOutcome) -> QueuedExchange? {
    change { state in
      state.ended(job, lesson)
      if state.active <= state.width.width, let next = state.popFirst() {
        state.moved += 1
        return next
      }
      if state.isClosed { door.close() }
      door.last = job.request.url
      // Of connections that nothing has gone over the first goes first: there are servers that wait for one after the other.
      state.idle.insert(door, at: job.onlyConnects ? 0 : state.idle.endIndex)
      return nil
    }
  }

  /// A piece of a long body has left its buffers behind.
  func passed(_ piece: SentPiece) { change { $0.arrived(piece) } }

  /// Where the length of a body is known only once it is open; nil: not even then.
  func counts(_ job: QueuedExchange, _ length: Int64?) {
    state.update(waking: .none) { state in
      state.bytesUnderWay -= job.counted
      job.counted = min(length ?? .max, ConcurrencyController.mostCounted)
      state.bytesUnderWay += job.counted
    }
  }

  /// A connection has taken something or brought something: it is not the way to the server alone that is waited for.
  func stirs() { if !hasStirred.load(ordering: .relaxed) { hasStirred.store(true, ordering: .relaxed) } }

  /// A server has closed an idle connection just as a request was sent over it. Requests there that must not be sent twice
  /// get new connections from now on: otherwise each try could end in the same race.
  ///
  /// Other requests are sent again over a new connection, and need no memory of the server. That rule cannot serve
  /// these: whether the server has read such a request is not known, so a second one could do its work twice. Nor can
  /// all of them go over new connections: that would cost a round trip each, and with TLS two, at every server.
  func noteClosedIdle(by url: HTTPURL) {
    hasClosers.store(true, ordering: .relaxed)
    closers.withLock { if $0.count < 1024 { $0.insert(url.origin) } }
  }

  func closesIdle(_ url: HTTPURL) -> Bool {
    hasClosers.load(ordering: .relaxed) && closers.withLock { $0.contains(url.origin) }
  }

  /// Calls what waits for the network and for nothing else.
  func whileWaiting<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    waiters.add(1, ordering: .relaxed)
    defer { waiters.subtract(1, ordering: .relaxed) }
    return try body()
  }

  /// No worker has still to begin, or is at work.
  private func allWait(_ active: Int) -> Bool { waiters.load(ordering: .relaxed) >= active }

  /// Whether an answer would tell anything of the width; else none need be looked at.
  var isLearning: Bool { options.adapts }

  var width: Int { state.update(waking: .none) { $0.width.width } }

  var learned: LearnedWidth? { state.update(waking: .none) { $0.width.learned } }

  /// Begins anew with what was learned before; for a transport that has sent next to nothing.
  func expect(_ learned: LearnedWidth) {
    if options.adapts { change { $0.width = ConcurrencyController(most: options.connections, learned: learned) } }
  }

  func follow(_ follower: @escaping @Sendable (Int) -> Void) {
    follower(
      state.update(waking: .none) { state in
        state.follower = follower
        return state.width.width
      })
  }

  /// Where the width has changed, who follows is told, and what may go now goes.
  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, started, told) = state.update(waking: .none) { state in
      let before = state.width.width
      let result = body(&state)
      let width = state.width.width
      return (result, state.startable(), width == before ? nil : state.follower.map { ($0, width) })
    }
    for (job, door) in started { if let door { door.give(job) } else { start(job) } }
    if let (follower, width) = told { follower(width) }
    return result
  }

  /// A worker's thread is stuck in a source: another takes its place.
  func abandon(_ door: WorkerInbox, _ job: QueuedExchange) {
    let next = state.update { state in
      state.bytesUnderWay -= job.counted
      let next = state.popFirst()
      if next == nil { state.workers -= 1 }
      return next
    }
    if let next { start(next) }
  }

  /// Ends the workers, now or once they are idle. No job is under way: each keeps its transport alive.
  func close() {
    let (idle, connecting) = state.update { state in
      state.isClosed = true
      // A job that is cancelled before it is handed in would not be taken out by its worker, and it holds the pool.
      defer { (state.idle, state.connecting) = ([], []) }
      return (state.idle, state.connecting)
    }
    for door in idle { door.close() }
    for job in connecting { job.cancel() }
  }

  private func start(_ job: QueuedExchange) {
    let door = WorkerInbox()
    door.give(job)
    SystemThread.start("fullbore-worker") { ConnectionWorker(self, door).run() }
  }

  /// Connects at once, and to more the longer nothing comes back of what is asked before bodies follow.
  func expect(bodiesAt url: HTTPURL, atMost count: Int) {
    let (jobs, grows) = state.update(waking: .none) { state in
      state.expected = (url, min(count, options.connections))
      let grows = !state.isGrowing && state.width.mayLeap
      if grows { state.isGrowing = true }
      return (state.connections(in: self), grows)
    }
    connect(jobs)
    if grows { SystemThread.start("fullbore-grow") { self.grow() } }
  }

  /// What becomes of it is seen when a request goes there.
  private func connect(_ jobs: [QueuedExchange]) { for job in jobs { job.start { _ in } } }

  /// Looks every 5 milliseconds whether what waits has moved, or any connection, as long as that may change the width. On a
  /// thread of its own.
  private func grow() {
    var seen = -1
    var quiet = 0
    var goesOn = true
    while goesOn {
      usleep(5000)
      let hasStirred = hasStirred.exchange(false, ordering: .relaxed)
      let connections = change { state -> [QueuedExchange] in
        quiet = state.waiting.isEmpty ? quiet + 1 : 0
        goesOn = !state.isClosed && state.width.mayLeap && quiet < (state.expected == nil ? 20 : 2000)
        if !goesOn { state.isGrowing = false }
        defer { seen = state.moved }
        guard goesOn, !hasStirred, state.busy > 0, allWait(state.busy), state.moved == seen else { return [] }
        if !state.waiting.isEmpty { state.width.still(underWay: state.bytesUnderWay) }
        if state.expected != nil { state.width.stillBefore() }
        return state.connections(in: self)
      }
      connect(connections)
    }
  }

  /// Bytes for one more upload buffer: all together have `budget`, so that few transfers are fast and many stay small. Give
  /// them back with `returnBuffer`. `now`: what the worker has from before.
  func takeBuffer(isTLS: Bool, now: Int = 0, budget: Int = 2 << 20) -> Int {
    let free = budget - buffered.load(ordering: .relaxed)
    let most = isTLS ? 256 : 512
    // Powers of two only, or a worker would come back for a little more each time.
    let size = ([512, 256, 128, 64].first { $0 <= most && $0 << 10 <= free } ?? 32) << 10
    return take(options.uploadBuffer ?? (now <= size && now * 2 >= size ? now : size))
  }

  /// Bytes for something else that a transfer needs.
  func take(_ size: Int) -> Int {
    buffered.add(size, ordering: .relaxed)
    return size
  }

  func returnBuffer(_ size: Int) { buffered.subtract(size, ordering: .relaxed) }
}

extension BlobSlice {
  /// It does not go with the head.
  fileprivate var isLarge: Bool { length ?? 0 >= ConnectionWorker.smallBody }
}
