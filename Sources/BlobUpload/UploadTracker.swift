import Blobs
import Synchronization

/// Tracks the session of one upload, the bytes handed to connections, and the bytes that the server has acknowledged.
/// Threads of the transport call it while the upload's task waits for the response.
final class UploadTracker: UploadEvents {
  private struct State {
    /// The newest session, possibly from an interim response to a creation that may still fail.
    var session: UploadSession?
    /// For bytes without checksums: `end` is the offset up to which the current request has sent bytes, and `furthest`
    /// is the maximum over all requests, because bytes of an earlier request may still reach the server.
    var (end, furthest): (Int64, Int64) = (0, 0)
    var record: (@Sendable (Int64, [UInt8]) -> Void)?
    /// The journal still has the upload of an earlier run, which is replaced by the next one that the server opens.
    var replaces = false

    mutating func note() {
      furthest = max(furthest, end)
      if furthest > 0 { record?(furthest, SentRange.noValue) }
    }
  }
  private let state = Mutex(State())
  /// `count`: bytes that the current request has handed to its connection. `start`: the offset of the first of them.
  private let count = Atomic<Int64>(0)
  private let start = Atomic<Int64>(0)
  private let source: SpooledSource
  private let progress: UploadProgress
  private let ledger: (any UploadLedger)?
  /// Size in bytes of each numbered part except the last one, in new sessions; nil: parts have no numbers.
  let partSize: Int64?
  /// Whether the offset of sent bytes is recorded from the creation on.
  private let notesCreation: Bool

  init(
    _ source: SpooledSource, _ progress: UploadProgress, _ ledger: (any UploadLedger)?, partSize: Int64?,
    notesCreation: Bool
  ) {
    self.source = source
    self.progress = progress
    self.ledger = ledger
    self.partSize = partSize
    self.notesCreation = notesCreation
  }

  var session: UploadSession? {
    get { state.withLock { $0.session } }
    set { state.withLock { $0.session = newValue } }
  }

  // MARK: The upload's task

  /// Called when a request starts that sends the bytes from `offset` on.
  func begin(at offset: Int64) {
    count.store(0, ordering: .relaxed)
    start.store(offset, ordering: .relaxed)
  }

  /// Bytes that the current or last request has handed to its connection.
  var handed: Int64 { count.load(ordering: .relaxed) }

  /// Starts to record in the journal how far bytes from `offset` on were sent.
  func noteSending(from offset: Int64) {
    guard let record = ledger?.sending(from: offset, key: SentRange.noKey) else { return }
    state.withLock { ($0.end, $0.record) = (offset, record) }
  }

  /// Called when the upload no longer exists, or is going to be replaced. `replaces`: the journal keeps it until there is
  /// another one, since the server may refuse that too.
  func restart(replaces: Bool = false) {
    state.withLock { state in
      state = State()
      state.replaces = replaces
    }
  }

  /// The next upload exists: the replaced one is recorded as one that is to be deleted.
  func endReplacement() {
    let replaces = state.withLock { state in
      defer { state.replaces = false }
      return state.replaces
    }
    if replaces { ledger?.abandoned() }
  }

  // MARK: UploadEvents

  func opened(_ session: UploadSession) {
    var session = session
    if session.partSize == nil { session.partSize = partSize }
    state.withLock { [session] in $0.session = session }
    endReplacement()
    guard let ledger else { return }
    ledger.opened(session)
    guard notesCreation, let record = ledger.sending(from: 0, key: SentRange.noKey) else { return }
    let count = handed
    state.withLock { state in
      if state.record != nil { return }
      (state.end, state.record) = (count, record)
      state.note()
    }
  }

  func makeDurable() async throws(UploadError) { try await ledger?.flush() }

  /// Limits `offset` to the bytes handed over so far: others cannot have arrived, whatever the server reports.
  func acknowledged(_ offset: Int64) {
    source.acknowledge(min(offset, start.load(ordering: .relaxed).addingClamped(handed)))
  }

  func sent(_ count: Int) {
    let count = Int64(count)
    progress.advance(by: count)
    state.withLock { state in
      state.end += count
      if count > 0 { state.note() }
    }
    self.count.add(count, ordering: .relaxed)
  }
}

/// Counts the body bytes of one request, and forwards all events.
final class CountedEvents: UploadEvents {
  private let events: any UploadEvents
  private let counter: SentCounter

  init(_ events: any UploadEvents, in counter: SentCounter) {
    self.events = events
    self.counter = counter
  }

  func opened(_ session: UploadSession) { events.opened(session) }
  func makeDurable() async throws(UploadError) { try await events.makeDurable() }
  func acknowledged(_ offset: Int64) { events.acknowledged(offset) }
  func sent(_ count: Int) {
    counter.bytes.add(Int64(count), ordering: .relaxed)
    events.sent(count)
  }
}

/// Forwards all events except `sent`, for body bytes that do not belong to the file.
final class UncountedEvents: UploadEvents {
  private let events: any UploadEvents

  init(_ events: any UploadEvents) { self.events = events }

  func opened(_ session: UploadSession) { events.opened(session) }
  func makeDurable() async throws(UploadError) { try await events.makeDurable() }
  func acknowledged(_ offset: Int64) { events.acknowledged(offset) }
  func sent(_ count: Int) {}
}

/// The number of body bytes handed to a connection.
final class SentCounter: Sendable {
  let bytes = Atomic<Int64>(0)
}
