import BlobSQLite

/// An upload that the system makes on behalf of an app, as Apple's background uploader for photo libraries does, and what is
/// known of it. There is one for each URL.
public struct JournalJob: Sendable, Hashable {
  /// How far a job is. The numbers are those of the journal's file.
  public enum State: Int64, Sendable {
    /// Nothing is under way. The version in `done`, if any, is at the destination.
    case idle = 0
    /// The job is about to be registered. Whether the system has it is known only by asking the system.
    case registering = 1
    /// The system has the job.
    case registered = 2
    /// The job has failed, and its retry is about to begin, is under way, or has ended.
    case retrying = 3
    /// `version` was given up, for the reason in `error`.
    case refused = 4
    /// `version` has failed, for the reason in `error`, and is tried again later.
    case waiting = 5
  }
  /// The URL at which the bytes will be found, without credentials.
  public let url: String
  /// What is sent, in the form of whoever sends it.
  public var source: String
  /// The version that was sent last, whole; nil: none was. `unknownVersion`: one of several was, and not the newest for
  /// certain.
  public var done: String?
  /// The version that is under way, has failed, or was given up; nil: none.
  public var version: String?
  /// How far the job is.
  public var state: State
  /// How often the system was asked to send `version`.
  public var attempts: Int
  /// The message of the last failure; nil: there was none.
  public var error: String?
  /// Seconds since 1970.
  public var updated: Int64

  /// Creates a job for a URL. `updated` is in seconds since 1970.
  public init(
    _ url: String, source: String, done: String? = nil, version: String? = nil, state: State = .idle, attempts: Int = 0,
    error: String? = nil, updated: Int64 = 0
  ) {
    self.url = url
    self.source = source
    self.done = done
    self.version = version
    self.state = state
    self.attempts = attempts
    self.error = error
    self.updated = updated
  }

  /// A value of `done` that is no version.
  public static let unknownVersion = "?"

  /// The system may have a job for it.
  public var isOpen: Bool { [.registering, .registered, .retrying].contains(state) }

  /// Nothing is left to do for this version: it was sent, or given up.
  public func isSettled(_ version: String) -> Bool {
    state == .idle && done == version || state == .refused && self.version == version
  }
}

extension Journal {
  /// nil: nothing is known of this URL.
  public func job(at url: String) throws(JournalError) -> JournalJob? {
    try read { store throws(SQLiteError) in try store.job(at: url) }
  }

  /// Stores the job in place of an earlier one with its URL. Once this has returned, it survives a SIGKILL.
  public func keep(_ job: JournalJob) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keep(job) }
  }

  /// All jobs that the system may have.
  public func openJobs() throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.openJobs() }
  }

  /// All jobs that were given up, the latest first.
  public func refusedJobs() throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.refusedJobs() }
  }

  /// All jobs that have failed and are tried again later, the latest first.
  public func waitingJobs() throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.waitingJobs() }
  }

  /// The version of an asset whose every file was sent to this folder or given up; nil: there is none.
  public func settledVersion(of asset: String, at folder: String) throws(JournalError) -> String? {
    try read { store throws(SQLiteError) in try store.settledVersion(of: asset, at: folder) }
  }

  /// Stores that nothing is left to do for this version of an asset, so that its files need not be looked at again.
  public func settle(_ asset: String, _ version: String, at folder: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.settle(asset, version, at: folder) }
  }

  /// Forgets that nothing is left to do for an asset: its files are looked at again.
  public func unsettle(_ asset: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.unsettle(asset) }
  }

  /// Lets a job that was given up be registered again by the next run; does nothing if it is not given up any more.
  ///
  /// `replacing`: the file at the job's URL is one of ours, or may be lost, and the new version takes its place. That a
  /// file is there is a usual reason for a job to be given up: an earlier version may have arrived although its job was
  /// reported as failed. Only the app or its user can know whether it is that one.
  public func tryAgain(_ job: JournalJob, replacing: Bool) throws(JournalError) {
    try read { store throws(SQLiteError) in
      guard var row = try store.job(at: job.url), row.state == .refused else { return }
      (row.state, row.attempts, row.error) = (.idle, 0, nil)
      if replacing, row.done == nil { row.done = JournalJob.unknownVersion }
      try store.keep(row)
      try store.unsettle(String(row.source.prefix { $0 != "\n" }))
    }
  }
}
