import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

@testable import BlobApple

/// Ends the extension before or after any call: from then on, nothing that it calls has an effect.
final class KillSwitch: Sendable {
  private struct State {
    /// Calls until the end; nil: there is none.
    var left: Int?
    var isKilled = false
  }
  private let state = Mutex(State())

  /// The extension starts, and ends before or after one of its next calls.
  func start(endingAfter steps: Int?) { state.withLock { $0 = State(left: steps) } }

  var isKilled: Bool { state.withLock { $0.isKilled } }

  /// Returns whether the extension is still running.
  func step() -> Bool {
    state.withLock { state in
      if let left = state.left {
        state.left = left - 1
        if left <= 0 { state.isKilled = true }
      }
      return !state.isKilled
    }
  }
}

/// A stand-in for the photo library, and for the system that sends its files.
final class FakePhotoSystem: PhotoJobSystem {
  struct Job {
    let url: String
    let asset: String
    let resource: AssetResource
    /// The asset's version when the job was made.
    let version: String
    var request: HTTPRequest
    var state: PhotoJob.State = .underWay
    var wasRetried = false
    var number: Int
  }
  struct State {
    var assets: [(asset: PhotoAsset, resources: [AssetResource])] = []
    var jobs: [String: Job] = [:]
    var made = 0
    /// How often each version was sent whole, by URL and version.
    var sent: [String: Int] = [:]
    /// How often the system was asked to send each version.
    var asked: [String: Int] = [:]
    var failures: [String: Int] = [:]
    var acknowledged: [String: Int] = [:]
    /// The version of the file that the server has at each URL.
    var held: [String: String] = [:]
    var mostJobs = 0
    var refusals = 0
    var retried: [HTTPRequest?] = []
    var cancelled = 0
  }
  let state = Mutex(State())
  let limit: Int
  let listsJobsUnderWay: Bool
  /// The names of the fields that the system leaves out of the requests that it gives back.
  let hiddenFields: Set<String>
  /// The system tells no request of its jobs at all.
  let hidesRequests: Bool
  let kills = KillSwitch()

  init(limit: Int = 10, listsJobsUnderWay: Bool = true, hiddenFields: Set<String> = [], hidesRequests: Bool = false) {
    self.limit = limit
    self.hidesRequests = hidesRequests
    self.hiddenFields = hiddenFields
    self.listsJobsUnderWay = listsJobsUnderWay
  }

  // MARK: What the extension calls

  func jobs() throws(PhotoJobError) -> [PhotoJob] {
    try call { state throws(PhotoJobError) in
      state.jobs.filter { self.listsJobsUnderWay || $0.value.state != .underWay }.map { id, job in
        PhotoJob(id: id, url: self.hidesRequests ? "" : job.url, state: job.state) {
          self.hidesRequests || self.hiddenFields.contains($0) ? nil : job.request.headers[$0]
        }
      }
    }
  }

  func acknowledge(_ job: PhotoJob) throws(PhotoJobError) {
    try call { state throws(PhotoJobError) in
      guard let known = state.jobs[job.id], known.state != .underWay else {
        throw PhotoJobError(.gone, "\(job.id) cannot be acknowledged")
      }
      state.jobs[job.id] = nil
      if known.state == .succeeded { state.acknowledged[job.id, default: 0] += 1 }
    }
  }

  /// PhotoKit acknowledges a job that was cancelled by itself.
  func cancel(_ job: PhotoJob) throws(PhotoJobError) {
    try call { state throws(PhotoJobError) in
      guard state.jobs[job.id]?.state == .underWay else { throw PhotoJobError(.gone, "\(job.id) cannot be cancelled") }
      state.jobs[job.id] = nil
      state.cancelled += 1
    }
  }

  func retry(_ job: PhotoJob, to destination: HTTPRequest?) throws(PhotoJobError) {
    try call { state throws(PhotoJobError) in
      guard let known = state.jobs[job.id], case .failed(_, mayRetry: true) = known.state else {
        throw PhotoJobError(.gone, "\(job.id) cannot be retried")
      }
      state.jobs[job.id]?.state = .underWay
      state.jobs[job.id]?.wasRetried = true
      if let destination { state.jobs[job.id]?.request = destination }
      state.asked["\(known.url) \(known.version)", default: 0] += 1
      state.retried.append(destination)
    }
  }

  func create(_ resource: AssetResource, of asset: PhotoAsset, to destination: HTTPRequest) throws(PhotoJobError) {
    try call { state throws(PhotoJobError) in
      guard state.assets.contains(where: { $0.asset.id == asset.id }) else {
        throw PhotoJobError(.gone, "\(asset.id) was deleted")
      }
      if state.jobs.count >= self.limit {
        state.refusals += 1
        throw PhotoJobError(.limit, "there are \(self.limit) jobs")
      }
      state.made += 1
      state.jobs["job \(state.made)"] = Job(
        url: destination.url.text, asset: asset.id, resource: resource, version: asset.version, request: destination,
        number: state.made)
      state.asked["\(destination.url) \(asset.version)", default: 0] += 1
      state.mostJobs = max(state.mostJobs, state.jobs.count)
    }
  }

  func assets() throws(PhotoJobError) -> () -> [PhotoAsset] {
    var rest = try call { state throws(PhotoJobError) in state.assets.map { $0.asset } }[...]
    return {
      defer { rest = rest.dropFirst(3) }
      return Array(rest.prefix(3))
    }
  }

  func resources(of asset: PhotoAsset) throws(PhotoJobError) -> [AssetResource] {
    try call { state throws(PhotoJobError) in
      guard let found = state.assets.first(where: { $0.asset.id == asset.id }) else {
        throw PhotoJobError(.gone, "\(asset.id) was deleted")
      }
      return found.resources
    }
  }

  private func call<Result>(
    _ body: (inout State) throws(PhotoJobError) -> Result
  ) throws(PhotoJobError) -> Result {
    let killed = PhotoJobError(.failed, "the extension was killed")
    if !kills.step() { throw killed }
    // `withLock` has no typed throws.
    let result = state.withLock { state -> Swift.Result<Result, PhotoJobError> in
      do throws(PhotoJobError) { return .success(try body(&state)) } catch { return .failure(error) }
    }
    let value = try result.get()
    if !kills.step() { throw killed }
    return value
  }

  // MARK: What happens outside the extension

  func add(_ id: String, _ resources: [AssetResource], created: Int64? = nil) {
    state.withLock { $0.assets.append((PhotoAsset(id: id, version: "1", created: created), resources)) }
  }

  func edit(_ index: Int) {
    state.withLock { state in
      let old = state.assets[index].asset
      let version = "\((Int(old.version) ?? 0) + 1)"
      state.assets[index].asset = PhotoAsset(id: old.id, version: version, created: old.created)
    }
  }

  /// Jobs under way, in the order in which they were made.
  var underWay: [String] {
    state.withLock { state in
      state.jobs.filter { $0.value.state == .underWay }.sorted { $0.value.number < $1.value.number }.map { $0.key }
    }
  }

  func succeed(_ id: String) {
    let isTaken = state.withLock { state in
      guard let job = state.jobs[id] else { return false }
      // RFC 9110 §13.1.1. Without a condition, the server refuses other bytes than those of the file that it has.
      let held = state.held[job.url]
      let replaces = job.request.headers["If-Match"] == "*"
      if replaces ? held == nil : held != nil && held != job.version { return true }
      state.held[job.url] = job.version
      state.jobs[id]?.state = .succeeded
      state.sent["\(job.url) \(job.version)", default: 0] += 1
      return false
    }
    if isTaken { fail(id, "the server refuses it") }
  }

  /// The bytes of a job arrive, and the system reports that it has failed: the server's answer was lost.
  func failAfterArrival(_ id: String) {
    succeed(id)
    let arrived = state.withLock { $0.jobs[id]?.state == .succeeded }
    if arrived { fail(id) }
  }

  func fail(_ id: String, _ reason: String = "the connection was lost") {
    state.withLock { state in
      guard let job = state.jobs[id] else { return }
      state.jobs[id]?.state = .failed(reason, mayRetry: !job.wasRetried)
      state.failures["\(job.url) \(job.version)", default: 0] += 1
    }
  }

  /// The system drops all jobs, as it may when the app switches the extension off.
  func dropJobs() { state.withLock { $0.jobs = [:] } }

  /// The system cancels a job, and acknowledges it itself.
  func lose(_ id: String) {
    state.withLock { state in
      guard let job = state.jobs.removeValue(forKey: id) else { return }
      state.failures["\(job.url) \(job.version)", default: 0] += 1
    }
  }
}

/// A journal that nothing is written to once the extension was killed.
struct KilledLedger: PhotoJobLedger {
  let journal: Journal
  let kills: KillSwitch

  func job(at url: String, account: String?) async throws(JournalError) -> JournalJob? {
    try await call { () throws(JournalError) in try await journal.jobs.job(at: url, account: account) }
  }
  func jobs(at url: String) async throws(JournalError) -> [JournalJob] {
    try await call { () throws(JournalError) in try await journal.jobs.jobs(at: url) }
  }
  func keep(_ job: JournalJob) async throws(JournalError) {
    try await call { () throws(JournalError) in try await journal.jobs.keep(job) }
  }
  func open() async throws(JournalError) -> [JournalJob] {
    try await call { () throws(JournalError) in try await journal.jobs.open() }
  }
  func refused() async throws(JournalError) -> [JournalJob] {
    try await call { () throws(JournalError) in try await journal.jobs.refused() }
  }
  func waiting() async throws(JournalError) -> [JournalJob] {
    try await call { () throws(JournalError) in try await journal.jobs.waiting() }
  }
  func settledVersion(of asset: String, at folder: String) async throws(JournalError) -> String? {
    try await call { () throws(JournalError) in try await journal.jobs.settledVersion(of: asset, at: folder) }
  }
  func settle(_ asset: String, _ version: String, at folder: String) async throws(JournalError) {
    try await call { () throws(JournalError) in try await journal.jobs.settle(asset, version, at: folder) }
  }

  func unsettle(_ asset: String) async throws(JournalError) {
    try await call { () throws(JournalError) in try await journal.jobs.unsettle(asset) }
  }

  private func call<Result>(_ body: () async throws(JournalError) -> Result) async throws(JournalError) -> Result {
    if !kills.step() { throw JournalError("the extension was killed") }
    let result = try await body()
    if !kills.step() { throw JournalError("the extension was killed") }
    return result
  }
}
