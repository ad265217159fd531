import Blobs
import CCurl
import Synchronization

/// Gives each job a lane: an idle one, a new one, or the next that comes free.
final class LanePool: Sendable {
  private struct State {
    var waiting = JobQueue()
    /// The most recently used last.
    var idle: [LaneDoor] = []
    var lanes = 0
    var closed = false
  }
  let options: CurlTransport.Options
  private let state = Mutex(State())
  private let buffered = Atomic(0)

  init(_ options: CurlTransport.Options) {
    precondition(Self.libraryIsReady)
    self.options = options
  }

  private static let libraryIsReady = curl_global_init(fb_curl_global_all()) == CURLE_OK

  func submit(_ job: LaneJob) {
    let (idle, starts): (LaneDoor?, Bool) = state.withLock { state in
      if let index = state.idle.lastIndex(where: { $0.leads(to: job.request.url) }) ?? state.idle.indices.last {
        return (state.idle.remove(at: index), false)
      }
      let starts = state.lanes < options.lanes
      if starts { state.lanes += 1 } else { state.waiting.append(job) }
      return (nil, starts)
    }
    if let idle { idle.give(job) } else if starts { start(job) }
  }

  func remove(_ job: LaneJob) { state.withLock { $0.waiting.remove(job) } }

  /// What a lane does after `job`, if anything waits; else it is idle and will be given something.
  func next(for door: LaneDoor, after job: LaneJob) -> LaneJob? {
    state.withLock { state in
      if let next = state.waiting.popFirst() { return next }
      if state.closed { door.close() }
      door.last = job.request.url
      state.idle.append(door)
      return nil
    }
  }

  /// A lane's thread is stuck in a source: another takes its place.
  func abandon(_ door: LaneDoor) {
    let job = state.withLock { state in
      let job = state.waiting.popFirst()
      if job == nil { state.lanes -= 1 }
      return job
    }
    if let job { start(job) }
  }

  /// Ends the lanes, now or once they are idle. No job is under way: each keeps its transport alive.
  func close() {
    let idle = state.withLock { state in
      state.closed = true
      defer { state.idle = [] }
      return state.idle
    }
    for door in idle { door.close() }
  }

  private func start(_ job: LaneJob) {
    let door = LaneDoor()
    SystemThread.start("fullbore-lane") { CurlLane(self, door).run(from: job) }
  }

  /// Bytes for one more upload buffer: a quarter of what is left of 4 MiB, so that one transfer is fast and many
  /// stay small. Give them back with `returnBuffer`.
  func takeBuffer(isTLS: Bool) -> Int {
    // Over TLS a record is 16 KiB: a larger buffer gains nothing.
    let free = (4 << 20) - buffered.load(ordering: .relaxed)
    let size = options.uploadBuffer ?? (isTLS ? 64 << 10 : min(max(free / 4, 64 << 10), 512 << 10))
    buffered.add(size, ordering: .relaxed)
    return size
  }

  func returnBuffer(_ size: Int) { buffered.subtract(size, ordering: .relaxed) }
}

/// First in, first out, without moving what waits.
private struct JobQueue {
  private var jobs: [LaneJob?] = []
  private var first = 0

  mutating func append(_ job: LaneJob) { jobs.append(job) }

  mutating func popFirst() -> LaneJob? {
    while first < jobs.count {
      let job = jobs[first]
      jobs[first] = nil
      first += 1
      if let job { return job }
    }
    jobs.removeAll(keepingCapacity: true)
    first = 0
    return nil
  }

  mutating func remove(_ job: LaneJob) {
    if let index = jobs[first...].firstIndex(where: { $0 === job }) { jobs[index] = nil }
  }
}
