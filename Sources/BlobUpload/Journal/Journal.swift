import BlobHTTP
import BlobSQLite
import Blobs

/// The memory of what was sent: an SQLite file that processes may share.
///
/// What a call returned, and what was noted before a `flush` that returned, survives a SIGKILL. Blocking work is done
/// on a thread of the journal's own. Close it: what is noted after the last flush, and the claims, go with it.
public actor Journal {
  public nonisolated let path: BytePath
  private nonisolated let executor = BlockingExecutor("fullbore-journal")
  private nonisolated let notes = JournalNotes()
  private nonisolated let log: SentLog
  private var store: JournalStore?
  /// Which file was opened.
  private(set) var identity: FileIdentity?
  /// Taken from `notes`, and not yet committed, because writing failed: they go first in the next transaction.
  private var pending: [JournalNote] = []

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens the journal, or makes it, readable for its owner alone. `mark` is who claims.
  public init(at path: BytePath, as mark: ProcessMark = .current) async throws(JournalError) {
    self.path = path
    log = SentLog(beside: path)
    let log = log
    // From here on it runs on the journal's thread.
    try open { () throws(SQLiteError) in try JournalStore(at: path, as: mark, log) }
  }

  /// Opens a journal that is there, to look at it: nothing is written, so that it can be looked at where the disk is full.
  /// Only one that an earlier version has made is written first, in the format of this one.
  public init(reading path: BytePath) async throws(JournalError) {
    self.path = path
    log = SentLog(beside: path)
    let log = log
    try open { () throws(SQLiteError) in
      if let store = try JournalStore(reading: path, log) { return store }
      return try JournalStore(at: path, as: .current, log)
    }
  }

  /// The id for a destination; the same for an equal one, in every run.
  public func destinationID(_ destination: JournalDestination) throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.destinationID(destination) }
  }

  /// Every destination that a push was begun for, in no order.
  public func destinations() throws(JournalError) -> [JournalDestination] {
    try read { store throws(SQLiteError) in try store.allDestinations() }
  }

  /// Claims what is to be sent: answers in the order of the intents, committed as one when it returns.
  /// With `again`, what was done before counts as fresh. With `sends`, an upload that may replace a file may do so from now
  /// on: what other sources have sent to its place is done no more. It is `.busy` while a live process sends another source there.
  /// With `replacesGrown`, a source that has grown since it was sent may replace a file, too.
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

  /// Claims entries as they are, whatever their sources are now: `.resume`, `.done` or `.busy`. Throws, and claims
  /// none, when one has been removed.
  public func claim(entries ids: [Int64]) throws(JournalError) -> [JournalClaim] {
    try write { store, me throws(SQLiteError) in try store.claim(entries: ids, as: me) }
  }

  /// Everything not done, the oldest first.
  public func unfinished() throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.unfinished() }
  }

  /// Bytes of a body that a host, or a proxy before it, was found to take in the last 30 days; nil: any, for all we know.
  public func largestBody(at origin: String) throws(JournalError) -> Int64? {
    try read { store throws(SQLiteError) in try store.largestBody(at: origin) }
  }

  /// Keeps what a refusal has taught.
  public func keepLargestBody(_ bytes: Int64, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepLargestBody(bytes, at: origin) }
  }

  /// Whether a host, or a proxy before it, was found in the last 30 days to refuse PATCH, and to let POST through.
  public func needsOverride(at origin: String) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.needsOverride(at: origin) }
  }

  /// Keeps what a refusal has taught, or that it is so no more.
  public func keepOverride(_ isNeeded: Bool, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepOverride(isNeeded, at: origin) }
  }

  /// How many requests at once a host was found to be worth, in the last 30 days; nil: not known.
  public func width(at origin: String) throws(JournalError) -> LearnedWidth? {
    try read { store throws(SQLiteError) in try store.width(at: origin) }
  }

  /// Keeps what a run has found.
  public func keepWidth(_ width: LearnedWidth, at origin: String) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.keepWidth(width, at: origin) }
  }

  /// Entries of this destination that are only to be deleted at the server, and that nobody has claimed.
  func leftovers(at destination: Int64) throws(JournalError) -> [Int64] {
    try read { store throws(SQLiteError) in try store.leftovers(at: destination) }
  }

  /// Counts and bytes by destination and state. Quick, however long the journal is.
  public func summary() throws(JournalError) -> [JournalSummary] {
    try read { store throws(SQLiteError) in try store.summary() }
  }

  /// The `limit` latest entries in a state, the oldest of them first; all of them where it is negative.
  public func entries(_ state: JournalEntry.State, limit: Int) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.entries(state, limit: limit) }
  }

  /// The record of an upload's content, made when it was done: ranges, or parts with their digests. Empty where none was
  /// made.
  func checksums(of id: Int64) throws(JournalError) -> (sent: [SentRange], parts: [PartReceipt]) {
    try read { store throws(SQLiteError) in (try store.ranges(id, underWayBy: nil), try store.receipts(id)) }
  }

  /// Who was or is to be sent to where `intent` goes, under the same name.
  package func sources(at intent: JournalIntent) throws(JournalError) -> [BytePath] {
    try read { store throws(SQLiteError) in try store.sources(of: intent.key) }
  }

  /// Forgets entries, whoever has them. Claim them first, so that a live owner is left alone.
  public func remove(_ ids: [Int64]) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.remove(ids) }
  }

  /// Commits everything noted before. Throws what the writer met, now or since a commit last succeeded; the notes are
  /// kept, and the next commit tries again.
  public func flush() throws(JournalError) { try commit(notes.take()) }

  /// Commits what it can, gives up this journal's claims, and closes the file. Every later call throws.
  public func close() {
    // `flush` tells of a failure; whoever closes has either asked it or does not mind.
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

  /// Writes what is noted, in the same transaction as `body`.
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

  /// What is noted is committed before `body` looks.
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
  /// Begins to keep what is sent of an upload that is claimed here. The closure takes the offset reached and the checksum
  /// under `key` of what lies between: before those bytes leave, on any thread; it does not wait for the disk, and what
  /// it was told survives a SIGKILL.
  package nonisolated func sending(
    _ id: Int64, from start: Int64, key: [UInt8]
  ) -> @Sendable (Int64, [UInt8]) -> Void { log.begin(id, from: start, key: key) }
}

// Notes, from any thread: they do not wait for the disk. Those for an entry that is not claimed here change nothing.
extension Journal {
  /// The session is known, or has changed. Written at once.
  public nonisolated func opened(_ id: Int64, _ session: UploadSession) { note(id, .opened(session)) }

  /// Bytes the server vouches for. Written within a second; only the latest.
  public nonisolated func acknowledged(_ id: Int64, _ offset: Int64) { note(id, .acknowledged(offset)) }

  /// The server has a numbered part. Takes the place of an earlier receipt for it. Written at once.
  public nonisolated func receipt(_ id: Int64, _ receipt: PartReceipt) { note(id, .receipt(receipt)) }

  /// Finished; the claim ends. Written within 250 ms, with others. With `keepsChecksums` the checksums of what was sent
  /// stay, for a source whose version alone does not tell its content: see `checksums(of:)`.
  /// With `replaces` its bytes were stored now: what other sources have sent to the same place is done no more.
  public nonisolated func done(
    _ id: Int64, _ result: UploadResult, keepsChecksums: Bool = false, replaces: Bool = true
  ) {
    note(
      id,
      .done(location: result.journaled, length: result.length, keepsChecksums: keepsChecksums, replaces: replaces))
  }

  /// Given up; the session is kept and the claim ends. Written within 250 ms.
  public nonisolated func failed(_ id: Int64, _ message: String) { note(id, .failed(message)) }

  /// Given up because of the other files of its push: see `JournalEntry.State.refused`. The claim ends. Written within
  /// 250 ms.
  public nonisolated func refused(_ id: Int64, _ message: String) { note(id, .refused(message)) }

  /// The server has lost it: back to an intent, with nothing acknowledged. Written at once. An entry that was done is
  /// claimed by this.
  public nonisolated func restarted(_ id: Int64) { note(id, .restarted) }

  /// As `restarted`, and what the server may still have becomes an entry of its own: see `JournalEntry.isLeftover`.
  nonisolated func abandoned(_ id: Int64) { note(id, .abandoned) }

  /// The entry is about this version of its source; also of an entry that is done, and claimed by nobody. Written within
  /// 250 ms.
  public nonisolated func recognized(_ id: Int64, _ validator: Validator) { note(id, .recognized(validator)) }

  /// The server has the upload of an entry that was superseded: it is done again. Written within 250 ms.
  nonisolated func kept(_ id: Int64) { note(id, .kept) }

  /// The claim ends, and the entry stays unfinished. Written within 250 ms.
  public nonisolated func released(_ id: Int64) { note(id, .released) }

  private nonisolated func note(_ id: Int64, _ event: JournalNote.Event) {
    guard let (delay, round) = notes.add(JournalNote(id: id, event: event)) else { return }
    // Unstructured: whoever notes must not wait for the writer. It ends within a second, and holds no closed journal.
    Task { [weak self] in
      // Not cancelled by anyone.
      if delay != .none { try? await Task.sleep(for: delay.duration) }
      await self?.writeNotes(of: round)
    }
  }

  private func writeNotes(of round: Int) {
    // The notes stay pending; the next flush or claim tries again, and throws.
    try? commit(notes.take(round: round))
  }
}
