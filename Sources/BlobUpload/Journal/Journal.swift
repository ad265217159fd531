import BlobHTTP
import BlobSQLite
import Blobs

/// A persistent record of uploads: an SQLite file that several processes may share.
///
/// The effects of a call that has returned, and notes written before a successful `flush`, survive a SIGKILL. Blocking
/// work runs on the journal's own thread. Close the journal: otherwise the notes after the last flush are lost, and so
/// are the claims.
public actor Journal {
  /// The path that the journal was opened with.
  public nonisolated let path: BytePath
  private nonisolated let executor = BlockingExecutor("fullbore-journal")
  private nonisolated let notes = JournalNotes()
  private nonisolated let log: SentLog
  private var store: JournalStore?
  /// The identity of the opened file.
  private(set) var identity: FileIdentity?
  /// Notes taken from `notes` whose commit failed: the next transaction writes them first.
  private var pending: [JournalNote] = []

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens or creates the journal, readable only for its owner. `mark` is the process that claims entries.
  public init(at path: BytePath, as mark: ProcessIdentity = .current) async throws(JournalError) {
    self.path = path
    log = SentLog(beside: path)
    let log = log
    // From here on, the initializer runs on the journal's thread.
    try open { () throws(SQLiteError) in try JournalStore(at: path, as: mark, log) }
  }

  /// Opens an existing journal for reading. Nothing is written, so this works on a full disk. Only a journal of an
  /// earlier version is first converted to this version's format.
  public init(reading path: BytePath) async throws(JournalError) {
    self.path = path
    log = SentLog(beside: path)
    let log = log
    try open { () throws(SQLiteError) in
      if let store = try JournalStore(reading: path, log) { return store }
      return try JournalStore(at: path, as: .current, log)
    }
  }

  /// The id of a destination. Equal destinations have the same id in every run.
  public func destinationID(_ destination: JournalDestination) throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.destinationID(destination) }
  }

  /// Every destination for which a push was started, in no particular order.
  public func destinations() throws(JournalError) -> [JournalDestination] {
    try read { store throws(SQLiteError) in try store.allDestinations() }
  }

  /// Claims uploads. Returns claims in the order of the intents, committed in one transaction.
  /// - `again`: treats uploads that were done before as fresh.
  /// - `sends`: an upload that may replace a file may do so from now on, so uploads of other sources to the same place
  ///   are no longer done. The claim is `.busy` while a live process sends another source there.
  /// - `replacesGrown`: a source that has grown since it was sent may replace a file, too.
  public func claim(
    _ intents: [JournalIntent], destination: Int64, again: Bool = false, sends: Bool = true,
    replacesGrown: Bool = false
  ) throws(JournalError) -> [JournalClaim] {
    try write { store, me throws(SQLiteError) in
      let claims = try store.claim(intents, destination: destination, again: again, sends: sends, as: me)
      if sends {
        try store.forgetReplaced(by: zip(claims, intents), at: destination, replacesGrown: replacesGrown)
      }
      return claims
    }
  }

  /// Claims entries without looking at their sources; the results are `.resume`, `.done` or `.busy`. Throws, and claims
  /// none, if one of them has been removed.
  public func claim(entries ids: [Int64]) throws(JournalError) -> [JournalClaim] {
    try write { store, me throws(SQLiteError) in try store.claim(entries: ids, as: me) }
  }

  /// The entries that are not done, the oldest first.
  ///
  /// - `id`, `limit`: at most this many of those with higher ids, so that a caller can read page by page. An entry that
  ///   is written meanwhile has a higher id than all others.
  /// - `destinations`: only entries with one of these destination ids; nil: all.
  public func unfinished(
    after id: Int64 = 0, limit: Int = .max, at destinations: Set<Int64>? = nil
  ) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.unfinished(after: id, limit, destinations) }
  }

  /// The highest id of an entry; 0: there are none.
  public func lastID() throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.lastID() }
  }

  /// The entries that are done, in the same way.
  public func finished(
    after id: Int64 = 0, limit: Int = .max, at destinations: Set<Int64>? = nil
  ) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.finished(after: id, limit, destinations) }
  }

  /// The largest request body in bytes that a host, or a proxy before it, was found to accept in the last 30 days; nil:
  /// no limit is known.
  public func largestBody(at origin: String) throws(JournalError) -> Int64? {
    try read { store throws(SQLiteError) in try store.largestBody(at: origin) }
  }

  /// Stores the limit that an error response has shown.
  public func keepLargestBody(_ bytes: Int64, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepLargestBody(bytes, at: origin) }
  }

  /// Whether a host, or a proxy before it, was found in the last 30 days to reject PATCH and to accept POST.
  public func needsOverride(at origin: String) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.needsOverride(at: origin) }
  }

  /// Stores the result of such a rejection, or that it no longer applies.
  public func keepOverride(_ isNeeded: Bool, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepOverride(isNeeded, at: origin) }
  }

  /// The best number of concurrent requests for a host, as found in the last 30 days; nil: not known.
  public func width(at origin: String) throws(JournalError) -> LearnedConcurrency? {
    try read { store throws(SQLiteError) in try store.width(at: origin) }
  }

  /// Stores the number of concurrent requests that a run has found.
  public func keepWidth(_ width: LearnedConcurrency, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepWidth(width, at: origin) }
  }

  /// Unclaimed entries of this destination that exist only to be deleted at the server.
  func leftovers(at destination: Int64) throws(JournalError) -> [Int64] {
    try read { store throws(SQLiteError) in try store.leftovers(at: destination) }
  }

  /// Counts and bytes by destination and state. Fast even for a large journal.
  public func summary() throws(JournalError) -> [JournalSummary] {
    try read { store throws(SQLiteError) in try store.summary() }
  }

  /// The latest `limit` entries in a state, the oldest of them first; all of them if `limit` is negative.
  public func entries(_ state: JournalEntry.State, limit: Int) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.entries(state, limit: limit) }
  }

  /// The checksums of an upload's content, stored when it was done: ranges, or parts with their digests. Empty if none
  /// were stored.
  func checksums(of id: Int64) throws(JournalError) -> (sent: [SentRange], parts: [PartReceipt]) {
    try read { store throws(SQLiteError) in (try store.ranges(id, underWayBy: nil), try store.receipts(id)) }
  }

  /// The sources that were or are to be sent to the place of `intent`, under the same name.
  package func sources(at intent: JournalIntent) throws(JournalError) -> [BytePath] {
    try read { store throws(SQLiteError) in try store.sources(of: intent.key) }
  }

  /// Removes entries, whoever has claimed them. Claim them first, so that entries of a live process are not removed.
  public func remove(_ ids: [Int64]) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.remove(ids) }
  }

  /// Commits all notes, including those whose earlier commit has failed. If this throws, the notes are kept, and the
  /// next commit tries again.
  public func flush() throws(JournalError) { try commit(notes.take()) }

  /// Commits what it can, releases this journal's claims, and closes the file. Every later call throws.
  public func close() {
    // `flush` reports failures: a caller that needs them calls it before `close`.
    try? flush()
    try? store?.unregister()
    store = nil
  }

  private func open(_ store: () throws(SQLiteError) -> JournalStore) throws(JournalError) {
    do {
      self.store = try inOpeningTurn(at: path, store)
    } catch {
      throw JournalError(error)
    }
    identity = FileIdentity(path)
  }

  /// Writes the notes in the same transaction as `body`.
  func write<Result>(
    _ body: (JournalStore, Int64) throws(SQLiteError) -> Result
  ) throws(JournalError) -> Result {
    guard let store else { throw closed }
    pending += notes.take()
    let waiting = pending
    do {
      let me = try store.register()
      let result = try store.transaction { () throws(SQLiteError) in
        try store.apply(waiting)
        return try body(store, me)
      }
      pending = []
      return result
    } catch {
      throw JournalError(error)
    }
  }

  /// Commits the notes before `body` reads.
  func read<Result>(_ body: (JournalStore) throws(SQLiteError) -> Result) throws(JournalError) -> Result {
    try flush()
    guard let store else { throw closed }
    do { return try body(store) } catch { throw JournalError(error) }
  }

  private func commit(_ notes: [JournalNote]) throws(JournalError) {
    guard let store else { throw closed }
    pending += notes
    let waiting = pending
    if waiting.isEmpty { return }
    do {
      try store.transaction { () throws(SQLiteError) in try store.apply(waiting) }
      pending = []
    } catch {
      throw JournalError(error)
    }
  }

  private var closed: JournalError { JournalError("the journal \(path) is closed") }
}

extension Journal {
  /// Starts recording what is sent of an upload that this journal has claimed. The closure takes the reached offset and
  /// the checksum under `key` of the bytes from `start` to it. It must be called before those bytes leave, on any
  /// thread; it does not wait for the disk, and its record survives a SIGKILL.
  package nonisolated func sending(
    _ id: Int64, from start: Int64, key: [UInt8]
  ) -> @Sendable (Int64, [UInt8]) -> Void { log.begin(id, from: start, key: key) }
}

// These methods may be called from any thread and do not wait for the disk. Notes for entries that this journal has not
// claimed are ignored.
extension Journal {
  /// The session was created or has changed. Written at once.
  public nonisolated func opened(_ id: Int64, _ session: UploadSession) { note(id, .opened(session)) }

  /// Bytes that the server has confirmed. Written within a second; only the latest offset.
  public nonisolated func acknowledged(_ id: Int64, _ offset: Int64) { note(id, .acknowledged(offset)) }

  /// The server has a numbered part. Replaces an earlier receipt for it. Written at once.
  public nonisolated func receipt(_ id: Int64, _ receipt: PartReceipt) { note(id, .receipt(receipt)) }

  /// The upload is done; the claim ends. Written within 250 ms, together with others. `keepsChecksums` keeps the
  /// checksums of the sent bytes, for a source whose version does not identify its content: see `checksums(of:)`.
  /// `replaces`: the bytes were stored just now, so uploads of other sources to the same place are no longer done.
  public nonisolated func done(
    _ id: Int64, _ result: UploadResult, keepsChecksums: Bool = false, replaces: Bool = true
  ) {
    note(
      id,
      .done(location: result.journaled, length: result.length, keepsChecksums: keepsChecksums, replaces: replaces))
  }

  /// The upload failed; its session is kept and the claim ends. Written within 250 ms.
  public nonisolated func failed(_ id: Int64, _ message: String) { note(id, .failed(message)) }

  /// The upload was given up because of other files in its push: see `JournalEntry.State.refused`. The claim ends.
  /// Written within 250 ms.
  public nonisolated func refused(_ id: Int64, _ message: String) { note(id, .refused(message)) }

  /// The server has lost the upload: its entry becomes an intent with no acknowledged bytes. Written at once. Claims an
  /// entry that was done.
  public nonisolated func restarted(_ id: Int64) { note(id, .restarted) }

  /// Like `restarted`; what the server may still have becomes a separate entry: see `JournalEntry.isLeftover`.
  nonisolated func abandoned(_ id: Int64) { note(id, .abandoned) }

  /// The entry refers to this version of its source. Also valid for an unclaimed entry that is done. Written within 250
  /// ms.
  public nonisolated func recognized(_ id: Int64, _ validator: Validator) { note(id, .recognized(validator)) }

  /// The claim ends, and the entry stays unfinished. Written within 250 ms.
  public nonisolated func released(_ id: Int64) { note(id, .released) }

  nonisolated func note(_ id: Int64, _ event: JournalNote.Event) {
    guard let (delay, round) = notes.add(JournalNote(id: id, event: event)) else { return }
    // Unstructured, because the caller must not wait for the writer. It ends within a second and does not retain a
    // closed journal.
    Task { [weak self] in
      // Nothing cancels this task.
      if delay != .none { try? await Task.sleep(for: delay.duration) }
      await self?.writeNotes(of: round)
    }
  }

  private func writeNotes(of round: Int) {
    // The notes stay pending; the next flush or claim tries again, and throws.
    try? commit(notes.take(round: round))
  }
}
