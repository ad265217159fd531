import Blobs

/// A file on a server, and what is known of it.
final class RemoteFile: Sendable {
  let ask: RemoteAsk
  let readAhead: Int
  private let retries: Int
  fileprivate let notice: (@Sendable (String) -> Void)?
  private struct State {
    /// Of a file that can be read but once: what the server said when that began.
    var once: (facts: RemoteFacts, fetch: RemoteFetch)?
    var isOnceOnly = false
  }
  private let state = Monitor(State())

  init(_ ask: RemoteAsk, retries: Int, readAhead: Int, notice: (@Sendable (String) -> Void)? = nil) {
    self.ask = ask
    self.notice = notice
    self.retries = retries
    self.readAhead = readAhead
  }

  var isOnceOnly: Bool { state.update(waking: .none) { $0.isOnceOnly } }

  /// What is there now. A file that can be read but once is begun by this, so that it is asked for once only.
  func facts(_ cancel: Cancellation) throws(BlobError) -> RemoteFacts {
    if let once = state.update(waking: .none, { $0.once }) { return once.facts }
    var patience = Patience(retries, cancel, "look at \(ask.url)")
    return try patience.run { () throws(BlobError) in try probe(cancel) }
  }

  private func probe(_ cancel: Cancellation) throws(BlobError) -> RemoteFacts {
    var fetch = RemoteFetch(ask, range: "0-0", capacity: readAhead)
    var facts = try fetch.facts(cancel)
    if facts.isPartial { try fetch.drain(cancel) }
    if facts.isRandom { return facts }
    // A refused range of an empty file comes without its version.
    if facts.isPartial || facts.length == 0 {
      // A server that sends more than the byte it was asked for would hold a connection that the next request may need.
      fetch.stop()
      fetch = RemoteFetch(ask, range: nil, capacity: readAhead)
      facts = try fetch.facts(cancel)
    }
    if facts.length == 0 { return facts }
    // What has begun is the whole, and all that will be had.
    return state.update { [fetch, facts] state in
      if let once = state.once { return once.facts }
      state.isOnceOnly = true
      state.once = (facts, fetch)
      return facts
    }
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let facts = try facts(cancel)
    if let once = state.update(waking: .none, { $0.once }) {
      return OnceReader(self, once.fetch, try once.fetch.content.open(at: offset, cancel), once.facts, at: offset)
    }
    guard let length = facts.length, 0...length ~= offset else {
      throw BlobError(
        .outOfRange, "open \(ask.url) at byte \(offset): it has \(facts.length.map(String.init) ?? "none")")
    }
    return RangeReader(self, facts, at: offset, cancel)
  }

  /// The rest from `offset` on, of the version that `facts` tell.
  func fetch(from offset: Int64, _ facts: RemoteFacts, _ cancel: Cancellation) throws(BlobError) -> RemoteFetch {
    let fetch = RemoteFetch(ask, range: "\(offset)-", of: facts.version, capacity: readAhead)
    let found = try fetch.facts(cancel)
    if found.start == offset, found.version == facts.version, found.length == facts.length { return fetch }
    throw BlobError(.changed, "\(ask.url): another version is there now, at byte \(offset)")
  }

  /// The only answer there was has broken off. The next question begins another, of whatever version is there then.
  func forget(_ fetch: RemoteFetch) {
    state.update { state in if state.once?.fetch === fetch { (state.once, state.isOnceOnly) = (nil, false) } }
  }

  func patience(_ cancel: Cancellation, _ what: String) -> Patience { Patience(retries, cancel, what) }
}

/// Attempts that are made again, with growing pauses, as long as they fail for want of a connection.
struct Patience {
  private let retries: Int
  private let cancel: Cancellation
  private let what: String
  private var failures = 0
  /// Bytes that came since failures are counted.
  private var received = 0
  /// So many bytes have to come before failures are forgotten. Else a server that gives one byte for each attempt would be
  /// asked for as long as the file has bytes.
  static let leastProgress = 16 << 10

  init(_ retries: Int, _ cancel: Cancellation, _ what: String) {
    self.retries = retries
    self.cancel = cancel
    self.what = what
  }

  /// So many bytes came. After enough of them the next failure is the first one again.
  mutating func noteReceived(_ count: Int) {
    if failures == 0 { return }
    received += count
    if received >= Self.leastProgress { (failures, received) = (0, 0) }
  }

  /// Waits before the next attempt, or throws `error` for good.
  mutating func wait(after error: BlobError) throws(BlobError) {
    guard error.code == .invalidated, failures < retries else {
      var error = error
      // Nobody can do better than we did.
      if error.code == .invalidated { error.code = .io }
      if failures > 0 { error.message += " (after \(failures + 1) attempts)" }
      throw error
    }
    failures += 1
    try MonotonicClock().sleep(.milliseconds(50 << min(failures, 7)), cancel, what)
  }

  mutating func run<Answer>(_ body: () throws(BlobError) -> Answer) throws(BlobError) -> Answer {
    while true {
      do throws(BlobError) { return try body() } catch { try wait(after: error) }
    }
  }
}

/// Reads from an offset on; what is cut is asked for again from there.
private final class RangeReader: BlobReader {
  let info: BlobInfo
  private let file: RemoteFile
  private let facts: RemoteFacts
  private let cancel: Cancellation
  private var offset: Int64
  private var patience: Patience
  private var current: (fetch: RemoteFetch, reader: any BlobReader)?

  init(_ file: RemoteFile, _ facts: RemoteFacts, at offset: Int64, _ cancel: Cancellation) {
    self.file = file
    self.facts = facts
    self.offset = offset
    self.cancel = cancel
    info = facts.info
    patience = file.patience(cancel, "read \(file.ask.url)")
  }

  deinit { endAnswer() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    let length = facts.length ?? 0
    if offset == length { return 0 }
    while true {
      do throws(BlobError) {
        let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: length - offset)))
        let count = try begun().read(into: window)
        if count == 0 {
          throw BlobError(.invalidated, "GET \(file.ask.url): the answer ended at byte \(offset) of \(length)")
        }
        offset += Int64(count)
        patience.noteReceived(count)
        return count
      } catch {
        endAnswer()
        try patience.wait(after: error)
      }
    }
  }

  private func begun() throws(BlobError) -> any BlobReader {
    if let current { return current.reader }
    let fetch = try file.fetch(from: offset, facts, cancel)
    let reader = try fetch.content.open(at: 0, cancel)
    current = (fetch, reader)
    return reader
  }

  func fileRegion() -> FileRegion? { nil }

  /// Gives up the connection of the answer under way, and what was read ahead of it. No request is begun before: where each
  /// reader of a transport kept one connection and waited for another, all would wait for ever.
  private func endAnswer() {
    current?.fetch.stop()
    current = nil
  }

  /// At the end of the file only the end of the answer is missing: with it the connection can be used again. Why it does
  /// not come does not matter, since all bytes are there.
  private func awaitEndOfAnswer() {
    guard offset == facts.length, let current else { return }
    withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { _ = try? current.reader.read(into: $0) }
  }

  /// Asks the server once more: one that writes into what it is sending gives bytes of two versions.
  func finish() throws(BlobError) {
    awaitEndOfAnswer()
    endAnswer()
    let now = try file.facts(cancel)
    if now.version == facts.version, now.length == facts.length { return }
    throw BlobError(.changed, "\(file.ask.url): it was replaced while it was read")
  }
}

/// Reads on in the only answer there is.
private final class OnceReader: BlobReader {
  let info: BlobInfo
  private let file: RemoteFile
  private let fetch: RemoteFetch
  private let reader: any BlobReader
  private let promised: PromisedLength
  private var offset: Int64
  /// Nobody has been told yet that the end may be none.
  private var isEndDoubtful: Bool

  init(_ file: RemoteFile, _ fetch: RemoteFetch, _ reader: any BlobReader, _ facts: RemoteFacts, at offset: Int64) {
    self.file = file
    self.fetch = fetch
    self.reader = reader
    self.offset = offset
    info = facts.info
    isEndDoubtful = facts.endsByClosing
    promised = PromisedLength("a download", info.length)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    do throws(BlobError) {
      let count = try reader.read(into: buffer)
      try promised.check(count, at: offset)
      offset += Int64(count)
      if count == 0 && isEndDoubtful {
        isEndDoubtful = false
        file.notice?(
          "GET \(file.ask.url): the connection was closed after \(offset) bytes, and the server had told no length: "
            + "whether that was all of it nobody can know")
      }
      return count
    } catch {
      guard error.code == .invalidated else { throw error }
      file.forget(fetch)
      throw cut(error)
    }
  }

  /// The code stays: who reads may begin again at byte 0, and at no other.
  private func cut(_ error: BlobError) -> BlobError {
    var error = error
    let length = info.length.map { " of \($0)" } ?? ""
    error.message =
      "\(error.message). The download was cut at byte \(offset)\(length), and the rest alone cannot be asked for, since the "
      + "server does not name the version of the file (by a strong ETag, or a Last-Modified that is a minute old), or gives "
      + "no ranges of it. If it never comes through in one go, download the file to a disk, and push it from there"
    return error
  }

  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try reader.finish() }
}
