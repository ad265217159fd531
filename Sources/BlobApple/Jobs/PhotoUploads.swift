import BlobHTTP
import BlobMedia
import BlobUpload
import Blobs
import Synchronization

#if canImport(Photos)
  import Photos
#endif

/// Keeps the system's background uploader busy with the photos that are not at the destination yet.
///
/// An extension calls `run` each time the system calls it. It records what has ended, retries a failed job once, and
/// registers as many jobs as the system takes, oldest photos first. What was sent is never
/// sent again, unless the photo was edited. All of it is in the journal before the system is asked, so the extension may
/// be killed at any moment: the next run goes on.
///
/// A photo whose job and retry have failed while others arrived is given up with a reason. While none arrives, the server
/// may be off: such photos wait, and after some of them a run registers one more only, until one arrives.
public actor PhotoUploads {
  /// How a run has ended.
  public enum Outcome: Sendable, Hashable {
    /// Every photo was sent or given up, or nobody is signed in. `refused` has those that were given up.
    case completed
    /// Jobs are under way, there is more to register, or photos that have failed are tried again later:
    /// `waiting` has these.
    case processing
    /// The journal or the photo library cannot be used now.
    case failed(String)
  }

  private nonisolated let executor = BlockingExecutor("fullbore-photos")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let destination: PhotoJobDestination
  let ledger: any PhotoJobLedger
  let system: any PhotoJobSystem
  let plan: AssetPlan
  let now: @Sendable () -> Int64
  private let patience: Int64
  /// Runs that were begun, and the last of those that `terminate` ends.
  private let begun = Atomic(0)
  private let terminated = Atomic(0)
  /// The number of the run that is under way; nil: none is.
  private var running: Int?
  var evidence = PhotoEvidence()
  /// A digest of the account whose photos the run uploads; nil: none is known.
  var account: String?

  /// The journal is opened by the first run.
  /// - Parameters:
  ///   - destination: the folder of the server, and how requests to it are made.
  ///   - path: the path of a journal, in the folder of an app group, so that the app finds it as well.
  ///   - edits: which of original and edit are sent where both exist.
  ///   - system: the photo library and the system's jobs; its methods may block.
  ///   - patience: after which a job that has not ended is made anew. From iOS 26.5 on, it is cancelled before. Before, where jobs
  ///     under way cannot be listed, it counts as lost, and may yet succeed.
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

  /// Ends the run that is under way before its next step; a later run is not affected. It may be called on any thread, and
  /// does not wait.
  public nonisolated func terminate() {
    terminated.store(begun.load(ordering: .acquiring), ordering: .releasing)
  }

  /// Never throws: a journal that cannot be written, for one, is `.failed`. What was registered before stays registered.
  public nonisolated func run() async -> Outcome { await run(as: beginRun()) }

  /// From here on `terminate` ends the run with this number.
  nonisolated func beginRun() -> Int { begun.add(1, ordering: .acquiringAndReleasing).newValue }

  func run(as number: Int) async -> Outcome {
    // The system may call again before it knows that the last call has ended.
    if running != nil { return .processing }
    running = number
    defer { running = nil }
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
    evidence = PhotoEvidence()
    // The jobs that the system has wait until a user is there.
    guard let session = destination.session() else { return .completed }
    account = session.digest
    let jobs = try await withAccounts(ask { () throws(PhotoJobError) in try system.jobs() })
    var occupied: [String: Int] = [:]
    // Jobs that are acknowledged make room for those that are retried.
    for job in jobs.sorted(by: { Self.rank($0) < Self.rank($1) }) {
      try checkTermination()
      if try await !settle(job) { occupied[Self.key(job), default: 0] += 1 }
    }
    try await lookAtWaiting()
    try await recover(occupied)
    // Jobs that the system does not list may be gone, so they take no place here. The system refuses those beyond its limit.
    let room = system.limit - occupied.values.reduce(0, +)
    let isFilled: Bool
    do throws(Interruption) {
      isFilled = try await fill(evidence.isOutage ? min(1, room) : room, occupied)
    } catch {
      try await judgeUnregistered()
      throw error
    }
    try await judgeUnregistered()
    let reason =
      evidence.reason ?? (evidence.unregistered.isEmpty ? nil : evidence.registrationError)
    if let reason, evidence.registered == 0, occupied.isEmpty { return .failed(reason) }
    let left = try await note { () throws(JournalError) in try await ledger.open() }
    let isDone = isFilled && left.isEmpty && occupied.isEmpty && evidence.unregistered.isEmpty
    return isDone ? .completed : .processing
  }

  /// The system may give back requests without our fields. If one account only has sent something to a job's URL, the job is that
  /// account's. A job whose request has its version has all its fields.
  private func withAccounts(_ jobs: [PhotoJob]) async throws(Interruption) -> [PhotoJob] {
    var jobs = jobs
    for index in jobs.indices where jobs[index].account == nil && jobs[index].version == nil {
      let url = Self.url(jobs[index])
      let rows = try await note { () throws(JournalError) in try await ledger.jobs(at: url) }
      if rows.count == 1 { jobs[index].account = rows[0].account }
    }
    return jobs
  }

  private static func rank(_ job: PhotoJob) -> Int {
    switch job.state {
    case .succeeded: 0
    case .failed(_, mayRetry: false): 1
    case .failed: 2
    case .underWay: 3
    }
  }

  /// The URL of a job in the ledger.
  static func url(_ job: PhotoJob) -> String { HTTPURL(job.url)?.normalized.text ?? job.url }
  static func key(_ job: PhotoJob) -> String { JournalJob.key(url(job), job.account) }

  /// Jobs that were registered, and that the system does not have any more, were cancelled or lost.
  private func recover(_ occupied: [String: Int]) async throws(Interruption) {
    let open = try await note { () throws(JournalError) in try await ledger.open() }
    // A job whose request the system does not tell may be that of any row.
    let areAllKnown = system.listsJobsUnderWay && occupied[""] == nil
    for var row in open where occupied[row.key] == nil {
      try checkTermination()
      if !areAllKnown, mayBeUnderWay(row) { continue }
      switch row.state {
      // The extension ended before it had registered the job.
      case .registering: (row.state, row.attempts) = (.idle, row.attempts - 1)
      case _ where row.attempts % 2 == 1: row.state = .idle
      default:
        let reason = (row.error.map { "\($0); then " } ?? "") + "the system lost or cancelled the job"
        row.giveUpOrWait(since: reason, whileOthersArrive: evidence.succeeded > 0)
      }
      try await keep(row)
    }
  }

  /// The clock may have been wrong when the job was registered, and then the time since tells nothing.
  func mayBeUnderWay(_ row: JournalJob) -> Bool {
    let (age, overflow) = now().subtractingReportingOverflow(row.updated)
    return !overflow && age.magnitude < UInt64(max(0, patience))
  }

  // MARK: Photos that do not arrive

  /// The jobs to the destination's folder that were given up, of the account that is signed in, the latest first. `Journal.tryAgain`
  /// lets one be registered again.
  public func refused() async throws(JournalError) -> [JournalJob] { own(try await ledger.refused()) }

  /// The jobs that have failed and are tried again later, of the same folder and account.
  public func waiting() async throws(JournalError) -> [JournalJob] { own(try await ledger.waiting()) }

  private func own(_ jobs: [JournalJob]) -> [JournalJob] {
    guard let session = destination.session() else { return [] }
    return jobs.filter { $0.account == session.digest && $0.url.hasPrefix(destination.folder.text) }
  }

  // MARK: Steps

  /// The session with which a request of this run is made. Another user may have signed in meanwhile; the run ends then.
  func session() throws(Interruption) -> PhotoJobSession {
    guard let session = destination.session(), session.digest == account else { throw .stopped }
    return session
  }

  func checkTermination() throws(Interruption) {
    if let running, running <= terminated.load(ordering: .acquiring) { throw .stopped }
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

#if canImport(Photos)
  @available(iOS 26.1, macOS 27.0, *)
  extension PhotoUploads {
    /// For an extension: over PhotoKit. The journal at `path` is opened by the first run.
    public init(to destination: PhotoJobDestination, journal path: BytePath, edits: GalleryEdits = .both) {
      self.init(to: destination, journal: path, edits: edits, over: PhotoKitJobs())
    }

    /// For `processJobs` of `PHBackgroundResourceUploadJobExtension`.
    public nonisolated func process() async -> PHBackgroundResourceUploadProcessingResult {
      Self.result(await run())
    }

    /// For `process` of `PHBackgroundResourceUploadExtension`, which is not asynchronous. It blocks the thread that the
    /// system calls it on until the run has ended; `terminate` ends it early.
    public nonisolated func processAndWait() -> PHBackgroundResourceUploadProcessingResult {
      let outcome = Monitor(Outcome?.none)
      // The run has begun before its task has.
      let number = beginRun()
      // Nothing else can wait for an asynchronous function here. The task ends with the run.
      Task { [self] in
        let ended = await run(as: number)
        outcome.update { $0 = ended }
      }
      return Self.result(outcome.wait { $0 })
    }

    private static func result(_ outcome: Outcome) -> PHBackgroundResourceUploadProcessingResult {
      switch outcome {
      case .completed: .completed
      case .processing: .processing
      case .failed: .failure
      }
    }
  }
#endif
