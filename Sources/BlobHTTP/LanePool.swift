import Blobs
import CCurl
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Gives each job a lane: an idle one, a new one, or the next that comes free.
///
/// As many are busy at once as `LaneWidth` says, which learns from what becomes of them: a server that answers at once is
/// served with least work by a few busy lanes, a distant one needs many.
final class LanePool: Sendable {
  private struct State {
    var width: LaneWidth
    var waiting = JobQueue()
    /// The most recently used last.
    var idle: [LaneDoor] = []
    var lanes = 0
    /// Of bodies under way, each counted with 4 MiB at the most.
    var bytesUnderWay: Int64 = 0
    /// Hears of every new width.
    var follower: (@Sendable (Int) -> Void)?

    var active: Int { lanes - idle.count }

    /// An idle lane for `job`, the one that leads to its server rather than another; nil: there is none.
    mutating func idleLane(for job: LaneJob) -> LaneDoor? {
      guard let index = idle.lastIndex(where: { $0.leads(to: job.request.url) }) ?? idle.indices.last else {
        return nil
      }
      return idle.remove(at: index)
    }

    mutating func take(_ lesson: LaneLesson) {
      bytesUnderWay -= lesson.counted
      if let piece = lesson.arrived { arrived(piece) }
      if let (began, ended) = lesson.refused { width.refused(from: began, at: ended) }
    }

    mutating func arrived(_ piece: LanePiece) {
      width.arrived(
        piece.bytes, from: piece.began, to: piece.ended, active: active, isWanted: !waiting.isEmpty)
    }

    /// What may go now of what waits, each with the lane that takes it; nil: a new one.
    mutating func startable() -> [(LaneJob, LaneDoor?)] {
      var started: [(LaneJob, LaneDoor?)] = []
      while active < width.width, let job = waiting.popFirst() {
        let door = idleLane(for: job)
        if door == nil { lanes += 1 }
        started.append((job, door))
      }
      return started
    }
    /// A thread looks after what waits.
    var isGrowing = false
    var isClosed = false
  }
  let options: CurlTransport.Options
  let proxies: ProxyRules
  // A monitor, where a `Mutex` would do: the thread sanitizer knows what a pthread lock guards.
  private let state: Monitor<State>
  private let buffered = Atomic(0)
  private let hasStirred = Atomic(false)
  private let waiters = Atomic(0)

  init(_ options: CurlTransport.Options) {
    precondition(Self.libraryIsReady)
    self.options = options
    state = Monitor(State(width: options.adapts ? LaneWidth(most: options.lanes) : LaneWidth(fixed: options.lanes)))
    proxies = ProxyRules(options.proxy, environment: options.environment)
  }

  private static let libraryIsReady = curl_global_init(fb_curl_global_all()) == CURLE_OK

  func submit(_ job: LaneJob) {
    enum Next { case give(LaneDoor), start, grow, wait }
    let next: Next = state.update { state in
      if let body = job.body { state.width.begins(isCostly: job.request.url.scheme == "https" && body.isLarge) }
      if state.active < state.width.width {
        if let door = state.idleLane(for: job) { return .give(door) }
        state.lanes += 1
        return .start
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

  func remove(_ job: LaneJob) { state.update { $0.waiting.remove(job) } }

  /// What a lane does after `job`, if anything waits and it is not one too many; else it is idle and will be given something.
  func next(for door: LaneDoor, after job: LaneJob, _ lesson: LaneLesson) -> LaneJob? {
    change { state in
      state.take(lesson)
      if state.active <= state.width.width, let next = state.waiting.popFirst() { return next }
      if state.isClosed { door.close() }
      door.last = job.request.url
      state.idle.append(door)
      return nil
    }
  }

  /// A piece of a long body has left its buffers behind.
  func passed(_ piece: LanePiece) { change { $0.arrived(piece) } }

  func counts(_ bytes: Int64) { state.update(waking: .none) { $0.bytesUnderWay += bytes } }

  /// A connection has taken something or brought something: it is not the way to the server alone that is waited for.
  func stirs() { if !hasStirred.load(ordering: .relaxed) { hasStirred.store(true, ordering: .relaxed) } }

  /// Calls what waits for the network and for nothing else.
  func whileWaiting<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    waiters.add(1, ordering: .relaxed)
    defer { waiters.subtract(1, ordering: .relaxed) }
    return try body()
  }

  /// No lane has still to begin, or is at work.
  private func allWait(_ active: Int) -> Bool { waiters.load(ordering: .relaxed) >= active }

  /// Whether an answer would tell anything of the width; else none need be looked at.
  var isLearning: Bool { options.adapts }

  var width: Int { state.update(waking: .none) { $0.width.width } }

  var learned: LearnedWidth? { state.update(waking: .none) { $0.width.learned } }

  /// Begins anew with what was learned before; for a transport that has sent next to nothing.
  func expect(_ learned: LearnedWidth) {
    if options.adapts { change { $0.width = LaneWidth(most: options.lanes, learned: learned) } }
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

  /// A lane's thread is stuck in a source: another takes its place.
  func abandon(_ door: LaneDoor) {
    let job = state.update { state in
      let job = state.waiting.popFirst()
      if job == nil { state.lanes -= 1 }
      return job
    }
    if let job { start(job) }
  }

  /// Ends the lanes, now or once they are idle. No job is under way: each keeps its transport alive.
  func close() {
    let idle = state.update { state in
      state.isClosed = true
      defer { state.idle = [] }
      return state.idle
    }
    for door in idle { door.close() }
  }

  private func start(_ job: LaneJob) {
    let door = LaneDoor()
    door.give(job)
    SystemThread.start("fullbore-lane") { CurlLane(self, door).run() }
  }

  /// Looks every 5 milliseconds whether what waits has moved, or any connection, as long as that may change the width. On a
  /// thread of its own.
  private func grow() {
    var seen = -1
    var quiet = 0
    var goesOn = true
    while goesOn {
      usleep(5000)
      let hasStirred = hasStirred.exchange(false, ordering: .relaxed)
      change { state in
        quiet = state.waiting.isEmpty ? quiet + 1 : 0
        goesOn = !state.isClosed && state.width.mayLeap && quiet < 20
        if !goesOn { state.isGrowing = false }
        if goesOn, quiet == 0, !hasStirred, allWait(state.active), state.waiting.taken == seen {
          state.width.still(underWay: state.bytesUnderWay)
        }
        seen = state.waiting.taken
      }
    }
  }

  /// Bytes for one more upload buffer: a quarter of what is left of 4 MiB, so that one transfer is fast and many
  /// stay small. Give them back with `returnBuffer`. `length`: of the body; nil: not known.
  func takeBuffer(isTLS: Bool, for length: Int64?) -> Int {
    let free = (4 << 20) - buffered.load(ordering: .relaxed)
    // Over TLS, where bytes are looked at once more, what does not stay in the processor's cache costs more than calls do.
    let most = !isTLS ? 512 : length ?? .max < 4 << 20 ? 32 : 256
    // Powers of two only, or a lane would come back for a little more each time.
    let size = [512, 256, 128, 64].first { $0 <= most && $0 << 12 <= free } ?? (isTLS ? 32 : 64)
    return take(options.uploadBuffer ?? size << 10)
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
  fileprivate var isLarge: Bool { length ?? 0 >= CurlLane.smallBody }
}
