import BlobHTTP
import BlobMedia
import BlobUpload
import Blobs
import Synchronization

/// Keeps the system's background uploader busy with the photos that are not at the destination yet.
///
/// An extension calls `run` each time the system calls it. It records what has ended, retries a failed job once and then
/// gives it up with a reason, and registers as many jobs as the system takes, oldest photos first. What was sent is never
/// sent again, unless the photo was edited. All of it is in the journal before the system is asked, so the extension may
/// be killed at any moment: the next run goes on.
public actor PhotoUploads {
  /// How a run has ended.
  public enum Outcome: Sendable, Hashable {
    /// Every photo was sent or given up. `Journal.refusedJobs` has those that were given up.
    case completed
    /// Jobs are under way, or there is more to register.
    case processing
    /// The journal or the photo library cannot be used now.
    case failed(String)
  }

  private nonisolated let executor = BlockingExecutor("fullbore-photos")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let destination: PhotoJobDestination
  let ledger: any PhotoJobLedger
  let system: any PhotoJobSystem
  private let plan: AssetPlan
  private let now: @Sendable () -> Int64
  private let patience: Int64
  private let isTerminated = Atomic(false)
  private var isRunning = false
  var failures = Failures()

  /// The journal is opened by the first run.
  /// - Parameters:
  ///   - destination: the folder of the server, and how requests to it are made.
  ///   - path: the path of a journal, in the folder of an app group, so that the app finds it as well.
  ///   - edits: which of original and edit are sent where both exist.
  ///   - system: the photo library and the system's jobs; its methods may block.
  ///   - patience: after which a job of which the system tells nothing counts as lost. It matters before iOS 26.5 only,
  ///     where jobs under way cannot be listed.
  public init(
    to destination: PhotoJobDestination, journal path: BytePath, edits: GalleryEdits = .both,
    over system: any PhotoJobSystem, patience: Duration = .seconds(7 * 86_400)
  ) {
    self.init(
      to: destination, ledger: UnopenedJournal(path), edits: edits, over: system, patience: patience,
      now: currentSeconds)
  }

  init(
    to destination: PhotoJobDestination, ledger: any PhotoJobLedger, edits: GalleryEdits = .both,
    over system: any PhotoJobSystem, patience: Duration, now: @escaping @Sendable () -> Int64
  ) {
    self.destination = destination
    self.ledger = ledger
    self.system = system
    self.now = now
    self.patience = patience.components.seconds
    plan = AssetPlan(edits)
  }

  /// Ends the run that is under way before its next step; without one, the next run. It may be called on any thread, and
  /// does not wait.
  public nonisolated func terminate() { isTerminated.store(true, ordering: .releasing) }

  /// Never throws: a journal that cannot be written, for one, is `.failed`. What was registered before stays registered.
  public func run() async -> Outcome {
    // The system may call again before it knows that the last call has ended.
    if isRunning { return .processing }
    isRunning = true
    defer {
      isRunning = false
      isTerminated.store(false, ordering: .releasing)
    }
    do throws(Interruption) {
      return try await pass()
    } catch {
      switch error {
      case .stopped: return .processing
      case .failed(let message): return .failed(message)
      }
    }
  }

  /// Why a run ends before all is done.
  enum Interruption: Error {
    /// There is no room for more jobs, or the system has asked for an end.
    case stopped
    case failed(String)
  }

  private func pass() async throws(Interruption) -> Outcome {
    failures = Failures()
    let jobs = try ask { () throws(PhotoJobError) in try system.jobs() }
    var occupied: [String: Int] = [:]
    // Jobs that are acknowledged make room for those that are retried.
    for job in jobs.sorted(by: { Self.rank($0) < Self.rank($1) }) {
      try checkTermination()
      if try await !settle(job) { occupied[Self.key(job), default: 0] += 1 }
    }
    try await recover(occupied)
    let open = try await note { () throws(JournalError) in try await ledger.openJobs() }
    let unlisted = open.count { occupied[$0.url] == nil }
    let isFilled: Bool
    do throws(Interruption) {
      isFilled = try await fill(system.limit - occupied.values.reduce(0, +) - unlisted, occupied)
    } catch {
      try await countFailures()
      throw error
    }
    try await countFailures()
    if let reason = failures.reason, failures.registered == 0 { return .failed(reason) }
    let left = try await note { () throws(JournalError) in try await ledger.openJobs() }
    return isFilled && left.isEmpty && occupied.isEmpty ? .completed : .processing
  }

  private static func rank(_ job: PhotoJob) -> Int {
    switch job.state {
    case .succeeded: 0
    case .failed(_, mayRetry: false): 1
    case .failed: 2
    case .underWay: 3
    }
  }

  static func key(_ job: PhotoJob) -> String { HTTPURL(job.url)?.normalized.text ?? job.url }

  /// Jobs that were registered, and that the system does not have any more, were cancelled or lost.
  private func recover(_ occupied: [String: Int]) async throws(Interruption) {
    let open = try await note { () throws(JournalError) in try await ledger.openJobs() }
    for var row in open where occupied[row.url] == nil {
      try checkTermination()
      if !system.listsJobsUnderWay, mayBeUnderWay(row) { continue }
      switch row.state {
      // The extension ended before it had registered the job.
      case .registering: row.attempts -= 1
      case _ where row.attempts < 2: break
      default:
        row.error = (row.error.map { "\($0); then " } ?? "") + "the system lost or cancelled the job"
        row.state = .refused
      }
      if row.state != .refused { row.state = .idle }
      try await keep(row)
    }
  }

  /// The clock may have been wrong when the job was registered, and then the time since tells nothing.
  private func mayBeUnderWay(_ row: JournalJob) -> Bool {
    let (age, overflow) = now().subtractingReportingOverflow(row.updated)
    return !overflow && age.magnitude < UInt64(max(0, patience))
  }

  // MARK: New jobs

  /// Registers up to `room` jobs. Returns whether no further photo waits for one.
  private func fill(_ room: Int, _ occupied: [String: Int]) async throws(Interruption) -> Bool {
    var room = room
    let next = try ask { () throws(PhotoJobError) in try system.assets() }
    while case let page = next(), !page.isEmpty {
      for asset in page where try await !isSettled(asset) {
        try checkTermination()
        guard try await fill(&room, with: asset, occupied) else { return false }
      }
    }
    return true
  }

  private func isSettled(_ asset: PhotoAsset) async throws(Interruption) -> Bool {
    try await note { () throws(JournalError) in
      try await ledger.settledVersion(of: asset.id, at: destination.folder.text) == asset.version
    }
  }

  /// Returns false when there is no room for a file of this asset.
  private func fill(
    _ room: inout Int, with asset: PhotoAsset, _ occupied: [String: Int]
  ) async throws(Interruption) -> Bool {
    guard let resources = try unlessGone({ () throws(PhotoJobError) in try system.resources(of: asset) }) else {
      return true
    }
    var isSettled = plan.isWhole(resources)
    for item in plan.items(of: resources) {
      let resource = resources[item.index]
      let source = Self.source(asset, resource)
      guard let (url, row) = try await place(asset, item.name, source), !row.isSettled(asset.version) else { continue }
      isSettled = false
      if row.isOpen || occupied[row.url] != nil { continue }
      if room <= 0 { return false }
      try checkTermination()
      if try await register(resource, asset, url, row) { room -= 1 }
    }
    if isSettled {
      try await note { () throws(JournalError) in
        try await ledger.settle(asset.id, asset.version, at: destination.folder.text)
      }
    }
    return true
  }

  /// Names a file of an asset in the ledger.
  private static func source(_ asset: PhotoAsset, _ resource: AssetResource) -> String {
    let number = resource.ordinal == 0 ? "" : "\n\(resource.ordinal)"
    return "\(asset.id)\n\(resource.kind?.rawValue ?? 0)\n\(resource.filename)\(number)"
  }

  /// The asset in such a name.
  static func asset(ofSource source: String) -> String { String(source.prefix { $0 != "\n" }) }

  /// The URL for a file, and what is known of it. nil: other files have all its URLs.
  private func place(
    _ asset: PhotoAsset, _ name: String, _ source: String
  ) async throws(Interruption) -> (HTTPURL, JournalJob)? {
    for url in destination.urls(asset, name) {
      let known = try await note { () throws(JournalError) in try await ledger.job(at: url.text) }
      let row = known ?? JournalJob(url.text, source: source)
      if row.source == source { return (url, row) }
    }
    return nil
  }

  /// Returns whether the job takes up room.
  private func register(
    _ resource: AssetResource, _ asset: PhotoAsset, _ url: HTTPURL, _ before: JournalJob
  ) async throws(Interruption) -> Bool {
    guard
      let request = destination.request(
        url, version: asset.version, created: asset.created, replaces: before.done != nil)
    else {
      throw .failed("\(url) is not below \(destination.folder)")
    }
    var row = before
    if row.done == Self.overtaken { row.done = JournalJob.unknownVersion }
    if row.version != asset.version { (row.version, row.attempts, row.error) = (asset.version, 0, nil) }
    row.attempts += 1
    row.state = .registering
    try await keep(row)
    do throws(PhotoJobError) {
      try system.create(resource, of: asset, to: request)
    } catch {
      switch error.code {
      // The system may have the job all the same; the next run finds out. The other photos do not wait for that.
      case .failed:
        (row.state, row.error) = (.registered, "\(error)")
        failures.reason = failures.reason ?? "\(error)"
        failures.jobs.append(row)
        if failures.jobs.count == Failures.mostJobs { throw .failed("\(error)") }
        return false
      case .limit:
        try await keep(before)
        throw .stopped
      case .gone:
        (row.state, row.error) = (.refused, "\(error)")
        try await keep(row)
        return false
      }
    }
    failures.registered += 1
    row.state = .registered
    try await keep(row)
    return true
  }

  // MARK: Steps

  func checkTermination() throws(Interruption) {
    if isTerminated.load(ordering: .acquiring) { throw .stopped }
  }

  func keep(_ row: JournalJob) async throws(Interruption) {
    var row = row
    row.updated = now()
    try await note { [row] () throws(JournalError) in try await ledger.keep(row) }
  }

  func note<Result>(
    _ body: () async throws(JournalError) -> Result
  ) async throws(Interruption) -> Result {
    do throws(JournalError) { return try await body() } catch { throw .failed("\(error)") }
  }

  /// A call without room ends the run.
  func ask<Result>(_ body: () throws(PhotoJobError) -> Result) throws(Interruption) -> Result {
    do throws(PhotoJobError) { return try body() } catch {
      throw error.code == .limit ? .stopped : .failed("\(error)")
    }
  }

  /// nil: what was asked for is gone.
  func unlessGone<Result>(_ body: () throws(PhotoJobError) -> Result) throws(Interruption) -> Result? {
    do throws(PhotoJobError) { return try body() } catch {
      if error.code == .gone { return nil }
      throw error.code == .limit ? .stopped : .failed("\(error)")
    }
  }
}
