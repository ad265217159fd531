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
/// The first lanes start at once, further ones only when what waits has not moved for 5 milliseconds: a server that
/// answers at once is served with least work by a few busy lanes, a distant one needs many.
final class LanePool: Sendable {
  private struct State {
    var waiting = JobQueue()
    /// The most recently used last.
    var idle: [LaneDoor] = []
    var lanes = 0
    /// A thread looks after what waits.
    var isGrowing = false
    var isClosed = false
  }
  let options: CurlTransport.Options
  let proxies: ProxyRules
  // A monitor, where a `Mutex` would do: the thread sanitizer knows what a pthread lock guards.
  private let state = Monitor(State())
  private let buffered = Atomic(0)

  init(_ options: CurlTransport.Options) {
    precondition(Self.libraryIsReady)
    self.options = options
    proxies = ProxyRules(options.proxy, environment: options.environment)
  }

  private static let libraryIsReady = curl_global_init(fb_curl_global_all()) == CURLE_OK
  private static let lanesAtOnce = 4

  func submit(_ job: LaneJob) {
    enum Next { case give(LaneDoor), start, grow, wait }
    let next: Next = state.update { state in
      if let index = state.idle.lastIndex(where: { $0.leads(to: job.request.url) }) ?? state.idle.indices.last {
        return .give(state.idle.remove(at: index))
      }
      if state.lanes < min(options.lanes, Self.lanesAtOnce) {
        state.lanes += 1
        return .start
      }
      state.waiting.append(job)
      if state.isGrowing || state.lanes == options.lanes { return .wait }
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

  /// What a lane does after `job`, if anything waits; else it is idle and will be given something.
  func next(for door: LaneDoor, after job: LaneJob) -> LaneJob? {
    state.update { state in
      if let next = state.waiting.popFirst() { return next }
      if state.isClosed { door.close() }
      door.last = job.request.url
      state.idle.append(door)
      return nil
    }
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

  /// Doubles the lanes for as long as none of them comes to what waits. On a thread of its own.
  private func grow() {
    var seen = -1
    var quiet = 0
    while quiet < 20 {
      usleep(5000)
      let jobs: [LaneJob]? = state.update { state in
        quiet = state.waiting.isEmpty ? quiet + 1 : 0
        if state.isClosed || state.lanes == options.lanes || quiet == 20 {
          state.isGrowing = false
          return nil
        }
        defer { seen = state.waiting.taken }
        if state.waiting.taken != seen { return [] }
        let jobs = (0..<min(state.lanes, options.lanes - state.lanes)).compactMap { _ in state.waiting.popFirst() }
        state.lanes += jobs.count
        return jobs
      }
      guard let jobs else { return }
      for job in jobs { start(job) }
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
