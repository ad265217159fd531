import BlobSQLite
import Blobs
import Synchronization

/// A persistent record of uploads: an SQLite file that several processes may share.
///
/// The effects of a call that has returned, and notes written before a successful `flush`, survive a SIGKILL. Blocking
/// work runs on the journal's own thread. Close the journal: otherwise the notes after the last flush are lost, and so
/// are the claims.
public actor Journal {
  /// The path that the journal was opened with.
  public nonisolated let path: BytePath
  private nonisolated let executor = BlockingExecutor("fullbore-journal")
  nonisolated let notes = JournalNotes()
  nonisolated let log: SentLog
  private var store: JournalStore?
  /// The identity of the opened file.
  private(set) var identity: FileIdentity?
  /// Notes taken from `notes` whose commit failed: the next transaction writes them first.
  private var pending: [JournalNote] = []
  /// Stores all changes elsewhere before this journal does; nil: nothing does.
  private let mirror: (any JournalMirror)?
  /// The key of `SealKeyFile`. No other process deletes it while this one has the journal open.
  nonisolated let knownKey = Mutex<[UInt8]?>(nil)

  /// The uploads that the system makes.
  public nonisolated var jobs: JournalJobs { JournalJobs(journal: self) }
  package nonisolated var hosts: JournalHosts { JournalHosts(journal: self) }
  package nonisolated var comparisons: JournalComparisons { JournalComparisons(journal: self) }
  package nonisolated var additions: JournalAdditions { JournalAdditions(journal: self) }
  package nonisolated var sealedNames: JournalSealedNames { JournalSealedNames(journal: self) }
  package nonisolated var numbers: JournalNumbers { JournalNumbers(journal: self) }
  nonisolated var seals: JournalSeals { JournalSeals(journal: self) }

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens or creates the journal, readable only for its owner.
  public init(at path: BytePath) async throws(JournalError) { try await self.init(at: path, as: .current) }

  /// `mark` is the process that claims entries. `mirror`: stores all changes before this journal does.
  package init(
    at path: BytePath, as mark: ProcessIdentity, mirror: (any JournalMirror)? = nil
  ) async throws(JournalError) {
    (self.path, self.mirror) = (path, mirror)
    log = SentLog(beside: path)
    let log = log
    // From here on, the initializer runs on the journal's thread.
    try open { () throws(SQLiteError) in try JournalStore(at: path, as: mark, log) }
  }

  /// Opens an existing journal for reading. Nothing is written, so this works on a full disk. Only a journal of an
  /// earlier version is first converted to this version's format.
  public init(reading path: BytePath) async throws(JournalError) {
    (self.path, mirror) = (path, nil)
    log = SentLog(beside: path)
    let log = log
    try open { () throws(SQLiteError) in
      if let store = try JournalStore(reading: path, log) { return store }
      return try JournalStore(at: path, as: .current, log)
    }
  }

  /// Claims uploads. Returns claims in the order of the intents, committed in one transaction.
  /// - `again`: treats uploads that were done before as fresh.
  /// - `sends`: an upload that may replace a file may do so from now on, so uploads of other sources to the same place
  ///   are no longer done. The claim is `.busy` while a live process sends another source there.
  /// - `replacesGrown`: a source that has grown since it was sent may replace a file, too.
  /// - `insteadOf`: the entry that the first intent replaces. The same transaction removes it, so that the journal always
  ///   has one of the two. It stays if the first claim is `.busy`.
  package func claim(
    _ intents: [JournalIntent], destination: Int64, again: Bool = false, sends: Bool = true,
    replacesGrown: Bool = false, insteadOf old: Int64? = nil
  ) throws(JournalError) -> [JournalClaim] {
    try write { store, me throws(SQLiteError) in
      let claims = try store.claims.claim(intents, destination: destination, again: again, sends: sends, as: me)
      for (claim, intent) in zip(claims, intents) {
        guard let twin = intent.relatives.twin, let id = claim.entryID,
          let other = try store.uploads.entry(intent.key, twin)
        else { continue }
        try store.uploads.twins.keep(id, other.id)
      }
      if sends {
        try store.replaced.forgetReplaced(by: zip(claims, intents), at: destination, replacesGrown: replacesGrown)
      }
      if let old, claims.first?.isBusy == false, let row = try UploadFacts(of: old, in: store.database) {
        try store.uploads.remove(old, row)
      }
      for intent in intents { try store.uploads.removeUnsent(intent.unnumberedKey, intent.source) }
      for (index, claim) in claims.enumerated()
      where intents[index].numbered != nil || intents[index].sealedName != nil {
        guard let id = claim.unfinished else { continue }
        if let name = intents[index].numbered { try store.numbers.keep(name, of: id) }
        if let name = intents[index].sealedName { try store.uploads.unindexed.keep(name, of: id) }
      }
      return claims
    }
  }

  /// Claims entries without looking at their sources; the results are `.resume`, `.done` or `.busy`. Throws, and claims
  /// none, if one of them has been removed.
  package func claim(entries ids: [Int64]) throws(JournalError) -> [JournalClaim] {
    try write { store, me throws(SQLiteError) in try store.claims.claim(entries: ids, as: me) }
  }

  /// Gives up the uploads to a destination for which `isMeant` returns true, except those that a live process has claimed: their
  /// sources can be added anew at once. An entry without a session is removed, one with a session becomes a leftover, which this
  /// journal has claimed: remove it once the session was deleted at the server. Of an upload that is done or claimed, a version
  /// that was added meanwhile is not uploaded any more. Returns the entries that were given up.
  package func giveUp(
    at destination: Int64, where isMeant: @Sendable (JournalEntry, JournalAddition?) -> Bool
  ) throws(JournalError) -> [JournalEntry] {
    try write { store, me throws(SQLiteError) in
      for id in try store.metadata.dropDone() {
        guard let entry = try store.uploads.entry(id: id), entry.destinationID == destination,
          isMeant(entry, try store.metadata.addition(of: id))
        else { continue }
        try store.metadata.keep(nil, of: id)
      }
      var entries: [JournalEntry] = []
      for entry in try store.uploads.unfinished(after: 0, .max, [destination])
      where isMeant(entry, try store.metadata.addition(of: entry.id)) { entries.append(entry) }
      for entry in entries where entry.owner != nil { try store.metadata.keep(nil, of: entry.id) }
      return try store.claims.giveUp(entries, as: me)
    }
  }

  /// Removes entries, whoever has claimed them. Claim them first, so that entries of a live process are not removed.
  public func remove(_ ids: [Int64]) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.uploads.remove(ids) }
  }

  /// Commits all notes, including those whose earlier commit has failed. If this throws, the notes are kept, and the
  /// next commit tries again.
  public func flush() throws(JournalError) { try commit(notes.take()) }

  /// `flush` for an upload, whose error ends it.
  func flushed() throws(UploadError) {
    do { try flush() } catch { throw UploadError(journal: error) }
  }

  /// Commits what it can, releases this journal's claims, and closes the file. Every later call throws.
  public func close() {
    // `flush` reports failures: a caller that needs them calls it before `close`.
    try? flush()
    // The next run deletes a key that stays.
    if store?.owners.id != nil { try? seals.forgetUnusedKey(self) }
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
  func write<Result: Sendable>(
    _ body: @Sendable (JournalStore, Int64) throws(SQLiteError) -> Result
  ) throws(JournalError) -> Result {
    guard let store else { throw closed }
    pending += notes.take()
    let waiting = pending
    let me: Int64
    do { me = try store.register() } catch { throw JournalError(error) }
    return try apply(waiting, to: store) { () throws(SQLiteError) in try body(store, me) }
  }

  /// Applies the notes and runs `body` in one transaction.
  private func apply<Result>(
    _ waiting: [JournalNote], to store: JournalStore, _ body: () throws(SQLiteError) -> Result
  ) throws(JournalError) -> Result {
    var refusal: JournalError?
    do {
      let result = try store.uploads.transaction { () throws(SQLiteError) in
        try store.notes.apply(waiting)
        refusal = if let mirror { try store.tell(mirror, of: waiting) } else { nil }
        // An error is what ends a transaction without a commit. SQLITE_ABORT.
        if let refusal { throw SQLiteError("note", path, code: 4, refusal.message) }
        return try body()
      }
      pending = []
      return result
    } catch {
      throw refusal ?? JournalError(error)
    }
  }

  /// Commits the notes before `body` reads.
  func read<Result: Sendable>(_ body: @Sendable (JournalStore) throws(SQLiteError) -> Result) throws(JournalError)
    -> Result
  {
    try flush()
    guard let store else { throw closed }
    do { return try body(store) } catch { throw JournalError(error) }
  }

  func commit(_ notes: [JournalNote]) throws(JournalError) {
    guard let store else { throw closed }
    pending += notes
    let waiting = pending
    if waiting.isEmpty { return }
    try apply(waiting, to: store) {}
  }

  private var closed: JournalError { JournalError("the journal \(path) is closed") }
}

// Damaged journals.
extension Journal {
  /// Like `init`, but moves a damaged journal aside and creates a new one. Returns the new path of the damaged file;
  /// nil: the journal was sound.
  ///
  /// The new journal knows nothing of the earlier uploads: files are sent again, and a server that has them compares. A
  /// file that is not an SQLite database is moved only if its name ends in `.sqlite`; otherwise the error is thrown.
  public static func opened(at path: BytePath) async throws(JournalError) -> (journal: Journal, damaged: BytePath?) {
    var kept: BytePath?
    while true {
      let found = FileIdentity(path)
      do {
        return (try await Journal(at: path), kept)
      } catch {
        // Another process has created a new journal, or has moved the damaged one.
        if FileIdentity(path) != found { continue }
        if !error.isDamaged || kept != nil { throw error }
        kept = inOpeningTurn(at: path) { mayBeMoved(path, found) ? keepAside(path, found) : nil }
        if kept == nil, FileIdentity(path) == found { throw error }
      }
    }
  }

  /// Whether `opened(at:)` moves the damaged journal at `path` aside: false if the file may be something else.
  public static func isKeptAside(at path: BytePath) -> Bool {
    inOpeningTurn(at: path) { mayBeMoved(path, FileIdentity(path)) }
  }

  /// Closes the journal after an error with `isDamaged`, and moves its files aside; the next process that opens it
  /// creates a new one. nil: the file stays, because it could not be moved or was replaced meanwhile.
  public func keptAside() -> BytePath? {
    close()
    return inOpeningTurn(at: path) { keepAside(path, identity) }
  }
}
