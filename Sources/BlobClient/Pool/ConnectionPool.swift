import BlobHTTP
import Blobs
import CCurl
import Platform
import Synchronization

/// Assigns each request to a worker: an idle one, a new one, or the next one that becomes idle.
///
/// `ConcurrencyController` limits the busy workers and learns from results: a server that responds at once is served
/// with the least CPU time by a few busy workers, a distant one needs many.
final class ConnectionPool: Sendable {
  struct State {
    var width: ConcurrencyController
    var waiting = ExchangeQueue()
    /// How many times a worker has continued with a request from the queue.
    var moved = 0
    /// Idle workers; the most recently used one is last.
    var idle: [WorkerInbox] = []
    var workers = 0
    /// Exchanges that only make a connection.
    var connecting: [QueuedExchange] = []
    /// Where requests with bodies will go, and their maximum number; nil once the first was submitted.
    var expected: (url: HTTPURL, count: Int)?
    /// Bytes of the bodies under way; each body counts for `ConcurrencyController.mostCounted` at the most.
    var bytesUnderWay: Int64 = 0
    /// Called with each new width.
    var follower: (@Sendable (Int) -> Void)?

    var active: Int { busy - connecting.count }
    /// Busy workers, including those that only connect.
    var busy: Int { workers - idle.count }

    /// An idle worker for `job`, preferably one that is connected to its server; nil: none is idle.
    mutating func idleWorker(for job: QueuedExchange) -> WorkerInbox? {
      guard let index = idle.lastIndex(where: { $0.leads(to: job.request.url) }) ?? idle.indices.last else {
        return nil
      }
      return idle.remove(at: index)
    }

    mutating func ended(_ job: QueuedExchange, _ outcome: ExchangeOutcome) {
      bytesUnderWay -= job.counted
      connecting.removeAll { $0 === job }
      if let piece = outcome.arrived { arrived(piece) }
      if let (began, ended) = outcome.refused { width.refused(from: began, at: ended) }
    }

    mutating func arrived(_ piece: SentPiece) {
      width.arrived(
        piece.bytes, from: piece.began, to: piece.ended, active: active, isWanted: !waiting.isEmpty)
    }

    /// Dequeues the exchanges that may start now, each with an idle worker; nil: a new worker must be started.
    mutating func startable() -> [(QueuedExchange, WorkerInbox?)] {
      var started: [(QueuedExchange, WorkerInbox?)] = []
      while active < width.width, !idle.isEmpty || waiting.count > connecting.count, let job = popFirst() {
        let inbox = idleWorker(for: job)
        if inbox == nil { workers += 1 }
        started.append((job, inbox))
      }
      return started
    }

    mutating func popFirst() -> QueuedExchange? {
      let job = waiting.popFirst()
      bytesUnderWay += job?.counted ?? 0
      return job
    }

    /// New exchanges that only connect: as many as the expected bodies will need, as far as is known.
    mutating func connections(in pool: ConnectionPool) -> [QueuedExchange] {
      guard let expected, !isClosed else { return [] }
      let wanted = max(1, min(expected.count, width.ahead)) - workers
      let jobs = (0..<max(0, wanted)).map { _ in QueuedExchange(connectingTo: expected.url, in: pool) }
      workers += jobs.count
      connecting += jobs
      return jobs
    }
    /// Whether the thread of `grow` is running.
    var isGrowing = false
    var isClosed = false
  }
  let options: SocketTransport.Options
  let proxies: ProxyRules
  // A `Monitor` rather than a `Mutex`, because the thread sanitizer understands pthread locks.
  let state: Monitor<State>
  let budget: BufferBudget
  private let hasActivity = Atomic(false)
  private let waiters = Atomic(0)
  /// Buffers for a head with a small body, or for the TLS records of such a request.
  let smallBuffers = BufferPool(size: WorkerBuffers.longestHead + Int(WorkerBuffers.smallBody) + (8 << 10))

  let habits = ServerHabits()
  let stalls = StalledServers()
  let context = Mutex<TLSContext?>(nil)

  init(_ options: SocketTransport.Options) {
    precondition(Self.libraryIsReady)
    self.options = options
    budget = BufferBudget(fixed: options.uploadBuffer)
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
        let isSentWithHead = body.length ?? 0 < WorkerBuffers.smallBody
        state.width.begins(isCostly: job.request.url.scheme == "https" && !isSentWithHead)
      }
      if state.active >= state.width.width { state.width.catchUp(underWay: state.bytesUnderWay) }
      if state.active < state.width.width {
        if let inbox = state.idleWorker(for: job) {
          state.bytesUnderWay += job.counted
          return .give(inbox)
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
    case .give(let inbox): inbox.give(job)
    case .start: start(job)
    case .grow: SystemThread.start("fullbore-grow") { self.grow() }
    case .wait: break
    }
  }

  func remove(_ job: QueuedExchange) { state.update { $0.waiting.remove(job) } }

  /// The next exchange of a worker after `job`. nil: none waits, or too many workers are busy; the worker becomes idle.
  /// `kept`: a URL at the server that the worker is connected to; nil: it has no connection.
  func next(
    for inbox: WorkerInbox, after job: QueuedExchange, _ outcome: ExchangeOutcome, kept: HTTPURL?
  ) -> QueuedExchange? {
    change { state in
      state.ended(job, outcome)
      if state.active <= state.width.width, let next = state.popFirst() {
        state.moved += 1
        return next
      }
      if state.isClosed { inbox.close() }
      inbox.last = kept
      // Unused connections are taken in the order in which they were made: some servers accept them in this order only.
      state.idle.insert(inbox, at: job.onlyConnects ? 0 : state.idle.endIndex)
      return nil
    }
  }

  /// Reports a piece of a long body that has left the local buffers.
  func passed(_ piece: SentPiece) { change { $0.arrived(piece) } }

  /// Corrects the counted length of a body, which is known only once it is open; nil: still unknown.
  func counts(_ job: QueuedExchange, _ length: Int64?) {
    state.update(waking: .none) { state in
      state.bytesUnderWay -= job.counted
      job.counted = min(length ?? .max, ConcurrencyController.mostCounted)
      state.bytesUnderWay += job.counted
    }
  }

  /// Reports that a connection has sent or received bytes: the delay is not network latency alone.
  func noteActivity() { if !hasActivity.load(ordering: .relaxed) { hasActivity.store(true, ordering: .relaxed) } }

  /// Runs `body`, which waits for the network and for nothing else.
  func whileWaiting<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    waiters.add(1, ordering: .relaxed)
    defer { waiters.subtract(1, ordering: .relaxed) }
    return try body()
  }

  /// Whether all workers wait for the network: none is starting or computing.
  private func allWait(_ active: Int) -> Bool { waiters.load(ordering: .relaxed) >= active }

  /// Whether results can change the width; otherwise they need not be reported.
  var isLearning: Bool { options.adapts }

  var width: Int { state.update(waking: .none) { $0.width.width } }

  var learned: LearnedConcurrency? { state.update(waking: .none) { $0.width.learned } }

  /// Restarts the controller with what an earlier run has learned; for a transport that has sent next to nothing.
  func expect(_ learned: LearnedConcurrency) {
    if options.adapts { change { $0.width = ConcurrencyController(most: options.connections, learned: learned) } }
  }

  func follow(_ follower: @escaping @Sendable (Int) -> Void) {
    follower(
      state.update(waking: .none) { state in
        state.follower = follower
        return state.width.width
      })
  }

  /// Changes the state. If the width has changed, calls the follower; then starts what may start now.
  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, started, change) = state.update(waking: .none) { state in
      let before = state.width.width
      let result = body(&state)
      let width = state.width.width
      return (result, state.startable(), width == before ? nil : state.follower.map { ($0, width) })
    }
    for (job, inbox) in started { if let inbox { inbox.give(job) } else { start(job) } }
    if let (follower, width) = change { follower(width) }
    return result
  }

  /// A worker's thread is blocked in a source: a new worker replaces it.
  func abandon(_ inbox: WorkerInbox, _ job: QueuedExchange) {
    let next = state.update { state in
      state.bytesUnderWay -= job.counted
      let next = state.popFirst()
      if next == nil { state.workers -= 1 }
      return next
    }
    if let next { start(next) }
  }

  /// Ends the workers, now or once they are idle. No request is under way: each keeps its transport alive.
  func close() {
    let (idle, connecting) = state.update { state in
      state.isClosed = true
      // An exchange cancelled before its worker begins would not be removed by that worker, and it retains the pool.
      defer { (state.idle, state.connecting) = ([], []) }
      return (state.idle, state.connecting)
    }
    for inbox in idle { inbox.close() }
    for job in connecting { job.cancel() }
  }

  private func start(_ job: QueuedExchange) {
    let inbox = WorkerInbox()
    inbox.give(job)
    SystemThread.start("fullbore-worker") { ConnectionWorker(self, inbox).run() }
  }

  /// Makes one connection now, and more of them the longer the requests before the bodies get no response.
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

  /// The results are ignored: a request that uses the connection reports its failure.
  private func connect(_ jobs: [QueuedExchange]) { for job in jobs { job.start { _ in } } }

  /// Checks every 5 milliseconds whether the queue or any connection has moved, as long as the width may still grow.
  /// Runs on its own thread.
  private func grow() {
    var seen = -1
    var quiet = 0
    var goesOn = true
    while goesOn {
      usleep(5000)
      let hasActivity = hasActivity.exchange(false, ordering: .relaxed)
      let connections = change { state -> [QueuedExchange] in
        quiet = state.waiting.isEmpty ? quiet + 1 : 0
        goesOn = !state.isClosed && state.width.mayLeap && quiet < (state.expected == nil ? 20 : 2000)
        if !goesOn { state.isGrowing = false }
        defer { seen = state.moved }
        guard goesOn, !hasActivity, state.busy > 0, allWait(state.busy), state.moved == seen else { return [] }
        if !state.waiting.isEmpty { state.width.still(underWay: state.bytesUnderWay) }
        if state.expected != nil { state.width.stillBefore() }
        return state.connections(in: self)
      }
      connect(connections)
    }
  }
}
