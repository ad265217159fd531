import Blobs
import Synchronization

/// What the requests of one upload have opened, handed to their connections and been told by the server. The transport's threads
/// call it while the upload's task waits for the answer.
final class UploadTracker: UploadEvents {
  private struct State {
    /// The newest session, perhaps from an interim answer to a creation that may yet fail.
    var session: UploadSession?
    /// Offset up to which the bytes of the request under way have left, and of all requests: the server may still get what an
    /// earlier one has handed over. For bytes that carry no checksum.
    var (end, furthest): (Int64, Int64) = (0, 0)
    var record: (@Sendable (Int64, [UInt8]) -> Void)?

    mutating func note() {
      furthest = max(furthest, end)
      if furthest > 0 { record?(furthest, SentRange.noValue) }
    }
  }
  private let state = Mutex(State())
  /// Bytes that the request under way has handed to its connection, and the offset that they begin at.
  private let count = Atomic<Int64>(0)
  private let start = Atomic<Int64>(0)
  private let source: SpooledSource
  private let progress: Progress
  private let ledger: (any UploadLedger)?
  /// Bytes of each numbered part but the last, in new sessions; nil: parts have no numbers.
  let partSize: Int64?
  /// It is noted from the creation on how far bytes have left.
  private let notesCreation: Bool

  init(
    _ source: SpooledSource, _ progress: Progress, _ ledger: (any UploadLedger)?, partSize: Int64?, notesCreation: Bool
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

  /// A request begins, with the bytes from `offset` on.
  func begin(at offset: Int64) {
    count.store(0, ordering: .relaxed)
    start.store(offset, ordering: .relaxed)
  }

  /// Bytes that the request under way, or the last one, has handed over.
  var handed: Int64 { count.load(ordering: .relaxed) }

  /// From now on it is noted in the journal how far bytes have left from `offset` on.
  func noteSending(from offset: Int64) {
    guard let record = ledger?.sending(from: offset, key: SentRange.noKey) else { return }
    state.withLock { ($0.end, $0.record) = (offset, record) }
  }

  /// The upload is gone.
  func restart() { state.withLock { $0 = State() } }

  // MARK: UploadEvents

  func opened(_ session: UploadSession) {
    var session = session
    if session.partSize == nil { session.partSize = partSize }
    state.withLock { [session] in $0.session = session }
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

  /// Bytes that were not handed over by then cannot have arrived, whatever the server says.
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

/// Counts the body bytes of one request, and passes everything on.
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

/// Does not report bytes that are none of the upload's.
final class UncountedEvents: UploadEvents {
  private let events: any UploadEvents

  init(_ events: any UploadEvents) { self.events = events }

  func opened(_ session: UploadSession) { events.opened(session) }
  func makeDurable() async throws(UploadError) { try await events.makeDurable() }
  func acknowledged(_ offset: Int64) { events.acknowledged(offset) }
  func sent(_ count: Int) {}
}

/// Body bytes that were handed to a connection.
final class SentCounter: Sendable {
  let bytes = Atomic<Int64>(0)
}
