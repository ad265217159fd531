import BlobSQLite

/// The uploads, in a journal, that the system makes. The journal commits each change before the call returns, on its own thread.
public struct JournalJobs: Sendable {
  let journal: Journal

  /// nil: nothing is known of this URL for this account, of which `account` is the digest (`JournalJob.digest(ofAccount:)`).
  public func job(at url: String, account: String? = nil) async throws(JournalError) -> JournalJob? {
    try await journal.read { store throws(SQLiteError) in try store.jobs.job(JournalJob.key(url, account)) }
  }

  /// The jobs of all accounts whose requests went to this URL.
  public func jobs(at url: String) async throws(JournalError) -> [JournalJob] {
    try await journal.read { store throws(SQLiteError) in try store.jobs.jobs(at: url) }
  }

  /// Stores the job in place of an earlier one with its URL and account. Once this has returned, it survives a SIGKILL.
  public func keep(_ job: JournalJob) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.jobs.keep(job) }
  }

  /// All jobs that the system may have.
  public func open() async throws(JournalError) -> [JournalJob] {
    try await journal.read { store throws(SQLiteError) in try store.jobs.open() }
  }

  /// To be called after an app has switched off the extension that registers jobs: the system may have dropped them. The next run
  /// registers those again that the system does not have, and counts nothing of them as a failure. Without this call, a job
  /// that the system has dropped is waited for during 7 days before iOS 26.5.
  public func forgetOpen() async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      for var job in try store.jobs.open() {
        // Whether the system has it is known only by asking the system, and it is no use to wait for it.
        if job.state == .retrying { job.attempts -= 1 }
        (job.state, job.updated) = (.registering, 0)
        try store.jobs.keep(job)
      }
    }
  }

  /// All jobs that were given up, of every account, the latest first.
  public func refused() async throws(JournalError) -> [JournalJob] {
    try await journal.read { store throws(SQLiteError) in try store.jobs.refused() }
  }

  /// The jobs of an account, by its name or number; nil: the jobs for which no account was named.
  public func refused(account: String?) async throws(JournalError) -> [JournalJob] {
    try await refused().filter { $0.account == JournalJob.digest(ofAccount: account) }
  }

  /// All jobs that have failed and are tried again later, of every account, the latest first.
  public func waiting() async throws(JournalError) -> [JournalJob] {
    try await journal.read { store throws(SQLiteError) in try store.jobs.waiting() }
  }

  /// The jobs of an account, by its name or number; nil: the jobs for which no account was named.
  public func waiting(account: String?) async throws(JournalError) -> [JournalJob] {
    try await waiting().filter { $0.account == JournalJob.digest(ofAccount: account) }
  }

  /// The version of an asset whose every file was sent to this folder or given up; nil: there is none.
  public func settledVersion(of asset: String, at folder: String) async throws(JournalError) -> String? {
    try await journal.read { store throws(SQLiteError) in try store.jobs.settledVersion(of: asset, at: folder) }
  }

  /// Stores that nothing is left to do for this version of an asset, so that its files need not be looked at again.
  public func settle(_ asset: String, _ version: String, at folder: String) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.jobs.settle(asset, version, at: folder) }
  }

  /// Forgets that nothing is left to do for an asset: its files are looked at again.
  public func unsettle(_ asset: String) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.jobs.unsettle(asset) }
  }

  /// Lets a job that was given up be registered again by the next run; does nothing if it is not given up any more.
  ///
  /// `replacing`: the file at the job's URL is one of ours, or may be lost, and the new version takes its place. Jobs
  /// are often given up because the URL already has a file: an earlier version may have arrived although its job was
  /// reported as failed. Only the app or its user can know whether the file is that version.
  public func tryAgain(_ job: JournalJob, replacing: Bool) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      guard var row = try store.jobs.job(job.key), row.state == .refused else { return }
      (row.state, row.attempts, row.error) = (.idle, 0, nil)
      if replacing, row.done == nil { row.done = JournalJob.unknownVersion }
      try store.jobs.keep(row)
      try store.jobs.unsettle(row.asset)
    }
  }
}
