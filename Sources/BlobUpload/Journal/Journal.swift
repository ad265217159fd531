import BlobSQLite
import Blobs
import Synchronization

/// The memory of what was sent where, in one SQLite file: it survives a kill at any instant.
///
/// Runs on a thread of its own. Claims are committed when they return. Notes are queued without waiting and committed
/// in groups, in their order: urgent ones at once, others after 50 ms or when 256 are waiting, and all of them before
/// the next claim. What a kill takes of them costs a question to the server, never a byte.
public actor Journal {
  private nonisolated let executor: BlockingExecutor
  private nonisolated let notes = NoteQueue()
  private var store: JournalStore?

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens the file; makes it, for its owner alone, and its folders where they are missing.
  public init(at path: BytePath) async throws(JournalError) { try await self.init(at: path, as: .current) }

  /// For tests, which stand for several processes.
  init(at path: BytePath, as owner: ProcessMark) async throws(JournalError) {
    executor = BlockingExecutor("fullbore-journal")
    try open(path, owner)
  }

  private func open(_ path: BytePath, _ owner: ProcessMark) throws(JournalError) {
    do { store = try JournalStore(path, owner) } catch { throw JournalError(error) }
  }

  /// The number under which a destination's entries are kept.
  public func destinationID(_ destination: JournalDestination) throws(JournalError) -> Int64 {
    try perform { store throws(SQLiteError) in try store.destinationID(destination) }
  }

  /// Claims what is about to be sent, all in one transaction. One claim for each intent, in their order.
  /// `again`: what was finished before is begun anew.
  public func claim(
    _ intents: [JournalIntent], destination: Int64, again: Bool = false
  ) throws(JournalError) -> [JournalClaim] {
    try perform { store throws(SQLiteError) in
      try store.claim(intents, destination: destination, again: again)
    }
  }

  /// Everything that is not done, oldest first.
  public func unfinished() throws(JournalError) -> [JournalEntry] {
    try perform { store throws(SQLiteError) in try store.entries([.intent, .open, .failed], limit: -1) }
  }

  /// The `limit` latest in a state.
  public func entries(_ state: JournalEntry.State, limit: Int) throws(JournalError) -> [JournalEntry] {
    try perform { store throws(SQLiteError) in try store.entries([state], limit: limit) }
  }

  public func summary() throws(JournalError) -> [JournalSummary] {
    try perform { store throws(SQLiteError) in try store.summary() }
  }

  /// Forgets entries.
  public func remove(_ ids: [Int64]) throws(JournalError) {
    try perform { store throws(SQLiteError) in try store.remove(ids) }
  }

  /// Returns once everything noted before is committed; throws what has kept a note from being written, also earlier.
  public func flush() throws(JournalError) {
    try perform { _ throws(SQLiteError) in }
    if let error = notes.failure { throw error }
  }

  /// Writes what is left, gives back every claim of this process, and closes. Calls after it throw.
  public func close() {
    // A failure here has been told by `flush`, or concerns claims that die with the process anyway.
    try? perform { store throws(SQLiteError) in try store.releaseAll() }
    store = nil
  }

  private func perform<Result>(_ body: (JournalStore) throws(SQLiteError) -> Result) throws(JournalError) -> Result {
    guard let store else { throw JournalError("the journal is closed") }
    let waiting = notes.take()
    do {
      return try store.transaction { () throws(SQLiteError) in
        for note in waiting { try store.apply(note) }
        return try body(store)
      }
    } catch {
      if !waiting.isEmpty { notes.fail(JournalError(error)) }
      throw JournalError(error)
    }
  }

  private func drain() {
    // An error is kept for the next `flush`, where someone can act on it.
    if store != nil { try? perform { _ throws(SQLiteError) in } }
  }
}

/// What is noted while an upload goes on. Any thread may call; nothing waits.
extension Journal {
  /// The server has a session. Written at once.
  public nonisolated func opened(_ id: Int64, _ session: UploadSession) { add(.opened(id, session), .urgent) }
  public nonisolated func acknowledged(_ id: Int64, _ offset: Int64) { add(.acknowledged(id, offset), .lazy) }
  public nonisolated func done(_ id: Int64, _ result: UploadResult) { add(.done(id, result.location), .lazy) }
  /// This run gave up. The session is kept and the claim given back.
  public nonisolated func failed(_ id: Int64, _ message: String) { add(.failed(id, message), .lazy) }
  /// The server has lost the session. Written at once.
  public nonisolated func restarted(_ id: Int64) { add(.restarted(id), .urgent) }
  /// The claim is given back, unfinished.
  public nonisolated func released(_ id: Int64) { add(.released(id), .lazy) }

  private nonisolated func add(_ note: JournalNote, _ haste: NoteQueue.Haste) {
    switch notes.add(note, haste) {
    case .nothing: break
    // Not structured: a note outlives whoever made it, and ends in 50 ms.
    case .drain: Task { await drain() }
    case .drainLater:
      Task {
        try? await Task.sleep(for: .milliseconds(50))  // cancelled or not, it is written
        await drain()
      }
    }
  }
}

enum JournalNote: Sendable {
  case opened(Int64, UploadSession)
  case acknowledged(Int64, Int64)
  case done(Int64, String?)
  case failed(Int64, String)
  case restarted(Int64)
  case released(Int64)
}

/// Notes that wait to be written, in their order.
private final class NoteQueue: Sendable {
  enum Haste { case urgent, lazy }
  enum Action { case nothing, drain, drainLater }

  private struct State {
    var notes: [JournalNote] = []
    var isDue = false
    var isHurried = false
    var failure: JournalError?
  }
  private let state = Mutex(State())
  private let most = 256

  var failure: JournalError? { state.withLock { $0.failure } }

  func add(_ note: JournalNote, _ haste: Haste) -> Action {
    state.withLock { state in
      state.notes.append(note)
      if !state.isHurried, haste == .urgent || state.notes.count >= most {
        state.isHurried = true
        return .drain
      }
      if state.isDue || state.isHurried { return .nothing }
      state.isDue = true
      return .drainLater
    }
  }

  func take() -> [JournalNote] {
    state.withLock { state in
      defer { (state.notes, state.isDue, state.isHurried) = ([], false, false) }
      return state.notes
    }
  }

  func fail(_ error: JournalError) { state.withLock { if $0.failure == nil { $0.failure = error } } }
}
