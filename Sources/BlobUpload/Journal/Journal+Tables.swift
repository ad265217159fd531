import BlobHTTP
import BlobSQLite
import Blobs

// Destinations and their entries.
extension Journal {
  /// The id of a destination. Equal destinations have the same id in every run.
  public func destinationID(_ destination: JournalDestination) throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.uploads.destinations.id(of: destination) }
  }

  /// The id under which `Uploader` and `BackgroundUploader` keep their uploads to this destination, with its account. `overwrite`: as
  /// given to them.
  public func destinationID(of destination: UploadDestination, overwrite: Bool = false) throws(JournalError) -> Int64 {
    try destinationID(destination.journaled(overwrite: overwrite))
  }

  /// Every destination for which a push was started, in no particular order.
  public func destinations() throws(JournalError) -> [JournalDestination] {
    try read { store throws(SQLiteError) in try store.uploads.destinations.all() }
  }

  /// The entries that are not done, the oldest first.
  ///
  /// - `id`, `limit`: at most this many of those with higher ids, so that a caller can read page by page. An entry that
  ///   is written meanwhile has a higher id than all others.
  /// - `destinations`: only entries with one of these destination ids; nil: all.
  public func unfinished(
    after id: Int64 = 0, limit: Int = .max, at destinations: Set<Int64>? = nil
  ) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in
      try store.releaseDeadOwners()
      return try store.uploads.unfinished(after: id, limit, destinations)
    }
  }

  /// The highest id of an entry; 0: there are none.
  package func lastID() throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.uploads.lastID() }
  }

  /// The entries that are done, in the same way. `since`: only those that were last changed then or later, in seconds since
  /// 1970.
  public func finished(
    after id: Int64 = 0, limit: Int = .max, at destinations: Set<Int64>? = nil, since time: Int64 = 0
  ) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.uploads.finished(after: id, limit, destinations, since: time) }
  }

  /// Unclaimed entries of this destination that exist only to be deleted at the server.
  func leftovers(at destination: Int64) throws(JournalError) -> [Int64] {
    try read { store throws(SQLiteError) in try store.uploads.leftovers(at: destination) }
  }

  /// Counts and bytes by destination and state. Fast even for a large journal.
  public func summary() throws(JournalError) -> [JournalSummary] {
    try read { store throws(SQLiteError) in try store.uploads.summary() }
  }

  /// The latest `limit` entries in a state, the oldest of them first; all of them if `limit` is negative.
  public func entries(_ state: JournalEntry.State, limit: Int) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.uploads.entries(state, limit: limit) }
  }

  /// The checksums of an upload's content, stored when it was done: ranges, or parts with their digests. Empty if none
  /// were stored.
  func checksums(of id: Int64) throws(JournalError) -> (sent: [SentRange], parts: [PartReceipt]) {
    try read { store throws(SQLiteError) in
      (try store.uploads.sent.ranges(id, underWayBy: nil), try store.uploads.receipts(id))
    }
  }

  /// The sources that were or are to be sent to the place of `intent`, under the same name.
  package func sources(at intent: JournalIntent) throws(JournalError) -> [BytePath] {
    try read { store throws(SQLiteError) in try store.uploads.sources(of: intent.key) }
  }

  /// Whether the destination of an entry has an entry of another source for this place, whatever its state is.
  func hasOther(than entry: Int64, at target: String) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.uploads.hasOther(than: entry, at: target) }
  }

  /// The sessions of all other entries for a place, of any source and destination.
  func sessions(at target: String, except entry: Int64) throws(JournalError) -> [UploadSession] {
    try read { store throws(SQLiteError) in try store.uploads.sessions(at: target, except: entry) }
  }

  /// The uploads to a destination, in any state, for which `isMeant` returns true. Reads every entry of the destination.
  package func uploads(
    to destination: Int64, where isMeant: @Sendable (JournalUpload) -> Bool
  ) throws(JournalError) -> [JournalUpload] {
    try read { store throws(SQLiteError) in try store.uploads.uploads(to: destination, where: isMeant) }
  }

  /// The history of the files in and below `folder`, an absolute path. `destination` is the journal's id of a
  /// destination; pushes to the same URL with other options count too.
  public func history(of folder: BytePath, destination: Int64) throws(JournalError) -> SourceHistory {
    var name = folder.bytes
    while name.last == UInt8(ascii: "/") { name.removeLast() }
    return try history(ofNamesBeginning: name + [UInt8(ascii: "/")], destination: destination)
  }

  /// The history of all sources whose names begin with `prefix`, which must end in an ASCII character.
  package func history(
    ofNamesBeginning prefix: [UInt8], destination: Int64
  ) throws(JournalError) -> SourceHistory {
    try read { store throws(SQLiteError) in try store.uploads.history(ofNamesBeginning: prefix, destination) }
  }
}

// Facts about hosts that earlier requests have shown.
extension Journal {
  /// The largest request body in bytes that a host, or a proxy before it, was found to accept in the last 30 days; nil:
  /// no limit is known.
  package func largestBody(at origin: String) throws(JournalError) -> Int64? {
    try read { store throws(SQLiteError) in try store.hosts.largestBody(at: origin) }
  }

  /// Stores the limit that an error response has shown.
  package func keepLargestBody(_ bytes: Int64, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.hosts.keepLargestBody(bytes, at: origin) }
  }

  /// Whether a host, or a proxy before it, was found in the last 30 days to reject PATCH and to accept POST.
  package func needsOverride(at origin: String) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.hosts.needsOverride(at: origin) }
  }

  /// Stores the result of such a rejection, or that it no longer applies.
  package func keepOverride(_ isNeeded: Bool, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.hosts.keepOverride(isNeeded, at: origin) }
  }

  /// The best number of concurrent requests for a host, as found in the last 30 days; nil: not known.
  package func width(at origin: String) throws(JournalError) -> LearnedConcurrency? {
    try read { store throws(SQLiteError) in try store.hosts.width(at: origin) }
  }

  /// Stores the number of concurrent requests that a run has found.
  package func keepWidth(_ width: LearnedConcurrency, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.hosts.keepWidth(width, at: origin) }
  }
}

// Files that were compared with those at a destination.
extension Journal {
  /// The versions in which the files of these intents were the same when they were compared last; nil: unknown, or they differed.
  package func compared(_ intents: [JournalIntent]) throws(JournalError) -> [ComparedVersion?] {
    try read { store throws(SQLiteError) in
      var versions: [ComparedVersion?] = []
      for intent in intents { versions.append(try store.compared.version(intent)) }
      return versions
    }
  }

  /// The entries among these whose files were compared.
  func compared(among ids: [Int64]) throws(JournalError) -> Set<Int64> {
    try read { store throws(SQLiteError) in try store.compared.uploads(among: ids) }
  }

  /// Stores the versions that were the same; nil: they differed, so that an earlier result is deleted. Once this has returned,
  /// the results survive a SIGKILL.
  package func keepCompared(_ compared: [(JournalIntent, ComparedVersion?)]) throws(JournalError) {
    try read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in
        for (intent, version) in compared {
          if let version { try store.compared.keep(version, of: intent) } else { try store.compared.forget(intent) }
        }
      }
    }
  }
}

// Pushes whose sources are still read.
extension Journal {
  /// Records that a push of `sources` starts, before a source is read or a request is sent. Replaces listings that
  /// earlier pushes of the same sources to the same URL have left, whatever their options were.
  package func beginListing(_ sources: [BytePath], destination: Int64) throws(JournalError) -> Int64 {
    try write { store, me throws(SQLiteError) in try store.listings.begin(sources, destination, me) }
  }

  /// Removes listings, because every file has an entry or the user gives them up. A listing that another process has
  /// taken over meanwhile stays.
  package func endListings(_ ids: [Int64]) throws(JournalError) {
    try write { store, me throws(SQLiteError) in try store.listings.end(ids, me) }
  }

  /// The listings that have not ended, the oldest first.
  public func listings() throws(JournalError) -> [JournalListing] {
    try read { store throws(SQLiteError) in
      try store.releaseDeadOwners()
      return try store.listings.all()
    }
  }
}

// Uploads that the system makes.
extension Journal {
  /// nil: nothing is known of this URL for this account, of which `account` is the digest (`JournalJob.digest(ofAccount:)`).
  public func job(at url: String, account: String? = nil) throws(JournalError) -> JournalJob? {
    try read { store throws(SQLiteError) in try store.jobs.job(JournalJob.key(url, account)) }
  }

  /// The jobs of all accounts whose requests went to this URL.
  public func jobs(at url: String) throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.jobs.jobs(at: url) }
  }

  /// Stores the job in place of an earlier one with its URL and account. Once this has returned, it survives a SIGKILL.
  public func keep(_ job: JournalJob) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.jobs.keep(job) }
  }

  /// All jobs that the system may have.
  public func openJobs() throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.jobs.open() }
  }

  /// To be called after an app has switched off the extension that registers jobs: the system may have dropped them. The next run
  /// registers those again that the system does not have, and counts nothing of them as a failure. Without this call, a job
  /// that the system has dropped is waited for during 7 days before iOS 26.5.
  public func forgetOpenJobs() throws(JournalError) {
    try read { store throws(SQLiteError) in
      for var job in try store.jobs.open() {
        // Whether the system has it is known only by asking the system, and it is no use to wait for it.
        if job.state == .retrying { job.attempts -= 1 }
        (job.state, job.updated) = (.registering, 0)
        try store.jobs.keep(job)
      }
    }
  }

  /// All jobs that were given up, of every account, the latest first.
  public func refusedJobs() throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.jobs.refused() }
  }

  /// The jobs of an account, by its name or number; nil: the jobs for which no account was named.
  public func refusedJobs(account: String?) throws(JournalError) -> [JournalJob] {
    try refusedJobs().filter { $0.account == JournalJob.digest(ofAccount: account) }
  }

  /// All jobs that have failed and are tried again later, of every account, the latest first.
  public func waitingJobs() throws(JournalError) -> [JournalJob] {
    try read { store throws(SQLiteError) in try store.jobs.waiting() }
  }

  /// The jobs of an account, by its name or number; nil: the jobs for which no account was named.
  public func waitingJobs(account: String?) throws(JournalError) -> [JournalJob] {
    try waitingJobs().filter { $0.account == JournalJob.digest(ofAccount: account) }
  }

  /// The version of an asset whose every file was sent to this folder or given up; nil: there is none.
  public func settledVersion(of asset: String, at folder: String) throws(JournalError) -> String? {
    try read { store throws(SQLiteError) in try store.jobs.settledVersion(of: asset, at: folder) }
  }

  /// Stores that nothing is left to do for this version of an asset, so that its files need not be looked at again.
  public func settle(_ asset: String, _ version: String, at folder: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.jobs.settle(asset, version, at: folder) }
  }

  /// Forgets that nothing is left to do for an asset: its files are looked at again.
  public func unsettle(_ asset: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.jobs.unsettle(asset) }
  }

  /// Lets a job that was given up be registered again by the next run; does nothing if it is not given up any more.
  ///
  /// `replacing`: the file at the job's URL is one of ours, or may be lost, and the new version takes its place. Jobs
  /// are often given up because the URL already has a file: an earlier version may have arrived although its job was
  /// reported as failed. Only the app or its user can know whether the file is that version.
  public func tryAgain(_ job: JournalJob, replacing: Bool) throws(JournalError) {
    try read { store throws(SQLiteError) in
      guard var row = try store.jobs.job(job.key), row.state == .refused else { return }
      (row.state, row.attempts, row.error) = (.idle, 0, nil)
      if replacing, row.done == nil { row.done = JournalJob.unknownVersion }
      try store.jobs.keep(row)
      try store.jobs.unsettle(row.asset)
    }
  }
}
