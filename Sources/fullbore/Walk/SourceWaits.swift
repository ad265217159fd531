import Blobs
import Synchronization

/// Records for which servers of URL sources a push is waiting, or whether it waits for standard input. Thread-safe.
final class SourceWaits: Sendable {
  /// Takes the place of a host in waits for standard input.
  static let standardInput = "standard input"

  private struct State {
    var waits: [Int: (host: String, since: ContinuousClock.Instant)] = [:]
    var begun = 0
    /// When each host last returned something.
    var answered: [String: ContinuousClock.Instant] = [:]
    var inputReads: Int64 = 0
  }
  private let state = Mutex(State())

  /// Runs `body`, which blocks until `host` (`host:port`) has responded or has failed permanently.
  func waiting<Result>(for host: String, _ body: () throws(BlobError) -> Result) throws(BlobError) -> Result {
    let number = begin(host)
    do throws(BlobError) {
      let result = try body()
      end(number, hasAnswered: true)
      return result
    } catch {
      end(number, hasAnswered: false)
      throw error
    }
  }

  func begin(_ host: String, at now: ContinuousClock.Instant = .now) -> Int {
    state.withLock { state in
      state.begun += 1
      if host == Self.standardInput { state.inputReads += 1 }
      state.waits[state.begun] = (host, now)
      return state.begun
    }
  }

  func end(_ number: Int, hasAnswered: Bool, at now: ContinuousClock.Instant = .now) {
    state.withLock { state in
      guard let wait = state.waits.removeValue(forKey: number) else { return }
      if hasAnswered { state.answered[wait.host] = now }
      if hasAnswered, wait.host == Self.standardInput { state.inputReads += 1 }
    }
  }

  /// The hosts with waits that began at or before `instant`, and the number of these waits; without standard input.
  func silent(since instant: ContinuousClock.Instant) -> (hosts: [String], waits: Int) {
    state.withLock { state in
      let waits = state.waits.values.filter { $0.since <= instant && $0.host != Self.standardInput }
      return (Set(waits.map(\.host)).sorted(), waits.count)
    }
  }

  /// Grows when a read of standard input begins, and when one has returned bytes: they may be held for long before they
  /// are sent.
  var inputReads: Int64 { state.withLock { $0.inputReads } }

  /// Whether standard input has had nothing to read since `instant`, and has not ended.
  func awaitsInput(since instant: ContinuousClock.Instant) -> Bool {
    state.withLock { $0.waits.values.contains { $0.host == Self.standardInput && $0.since <= instant } }
  }

  /// The hosts among `hosts` that have returned something after `instant`.
  func answered(_ hosts: [String], after instant: ContinuousClock.Instant) -> [String] {
    state.withLock { state in hosts.filter { host in state.answered[host].map { $0 > instant } ?? false } }
  }
}

/// A source at a URL that records when it waits for its server, or standard input.
struct WaitRecordingSource: BlobSource {
  let source: any BlobSource
  /// `host:port`, or `SourceWaits.standardInput`.
  let host: String
  let waits: SourceWaits

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try waits.waiting(for: host) { () throws(BlobError) in try source.info(cancel) }
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try waits.waiting(for: host) { () throws(BlobError) in try source.open(at: offset, cancel) }
    return AwaitedReader(reader, host, waits)
  }
}

private final class AwaitedReader: BlobReader {
  private let reader: any BlobReader
  private let host: String
  private let waits: SourceWaits

  init(_ reader: any BlobReader, _ host: String, _ waits: SourceWaits) {
    (self.reader, self.host, self.waits) = (reader, host, waits)
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    try waits.waiting(for: host) { () throws(BlobError) in try reader.read(into: buffer) }
  }

  func fileRegion() -> FileRegion? { reader.fileRegion() }

  func finish() throws(BlobError) {
    try waits.waiting(for: host) { () throws(BlobError) in try reader.finish() }
  }
}
