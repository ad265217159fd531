import Blobs

/// A file on a server, with the state that its readers share.
final class RemoteFile: Sendable {
  let ask: RemoteRequest
  let readAhead: Int
  /// Begins to count the failures of one reader.
  private let failures: @Sendable () -> any ReadFailures
  fileprivate let notice: (@Sendable (String) -> Void)?
  let tellsTimes: Bool
  private struct State {
    /// For a file that can be read only once: the download in progress, and the facts from its head.
    var once: (facts: RemoteFacts, fetch: RemoteFetch)?
    var isOnceOnly = false
  }
  private let state = Monitor(State())

  init(
    _ ask: RemoteRequest, readAhead: Int, tellsTimes: Bool = false, notice: (@Sendable (String) -> Void)? = nil,
    failures: @escaping @Sendable () -> any ReadFailures
  ) {
    (self.ask, self.notice, self.tellsTimes) = (ask, notice, tellsTimes)
    self.failures = failures
    self.readAhead = readAhead
  }

  var isOnceOnly: Bool { state.update(waking: .none) { $0.isOnceOnly } }

  /// The current facts. For a file that can be read only once, this starts the download, so that there is only one
  /// request.
  func facts(_ cancel: Cancellation) throws(BlobError) -> RemoteFacts {
    if let once = state.update(waking: .none, { $0.once }) { return once.facts }
    var patience = patience(cancel, "look at \(ask.url)")
    return try patience.run { () throws(BlobError) in try probe(cancel) }
  }

  private func probe(_ cancel: Cancellation) throws(BlobError) -> RemoteFacts {
    var fetch = RemoteFetch(ask, range: "0-0", capacity: readAhead)
    var facts = try fetch.facts(cancel)
    if facts.isPartial { try fetch.drain(cancel) }
    if facts.isRandom { return facts }
    // The 416 response for an empty file has no version. Some servers answer 200 with the requested byte alone.
    if facts.isPartial || facts.length ?? .max <= 1 {
      // A server that sends more than the requested byte would occupy a connection that the next request may need.
      fetch.stop()
      fetch = RemoteFetch(ask, range: nil, capacity: readAhead)
      facts = try fetch.facts(cancel)
    }
    if facts.length == 0 { return facts }
    // The download in progress is of the whole file, and it is the only one.
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
      return SinglePassReader(self, once.fetch, try once.fetch.content.open(at: offset, cancel), once.facts, at: offset)
    }
    guard let length = facts.length, 0...length ~= offset else {
      throw BlobError(
        .outOfRange, "open \(ask.url) at byte \(offset): it has \(facts.length.map(String.init) ?? "none")")
    }
    return RangeReader(self, facts, at: offset, cancel)
  }

  /// Requests the rest from `offset` on, of the version in `facts`.
  func fetch(from offset: Int64, _ facts: RemoteFacts, _ cancel: Cancellation) throws(BlobError) -> RemoteFetch {
    let fetch = RemoteFetch(ask, range: "\(offset)-", of: facts.version, capacity: readAhead)
    let found = try fetch.facts(cancel)
    if found.start == offset, found.version == facts.version, found.length == facts.length { return fetch }
    throw BlobError(.changed, "\(ask.url): another version is there now, at byte \(offset)")
  }

  /// The single download has failed. The next call of `facts` starts another one, of the version that is current then.
  func forget(_ fetch: RemoteFetch) {
    state.update { state in if state.once?.fetch === fetch { (state.once, state.isOnceOnly) = (nil, false) } }
  }

  func patience(_ cancel: Cancellation, _ what: String) -> Patience { Patience(failures(), cancel, what) }
}

/// Reads from an offset on. After a broken connection it requests the rest from the current offset.
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
    info = facts.info(tellingTimes: file.tellsTimes)
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

  /// Closes the response in progress and discards its read-ahead buffer. This must precede the next request: if every
  /// reader of a transport waited for a second connection while it had one, all would deadlock.
  private func endAnswer() {
    current?.fetch.stop()
    current = nil
  }

  /// At the end of the file, waits for the end of the response, so that the connection can be reused. An error here
  /// does not matter, since all bytes have arrived.
  private func awaitEndOfAnswer() {
    guard offset == facts.length, let current else { return }
    withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { _ = try? current.reader.read(into: $0) }
  }

  /// Requests the facts again, because a server whose file is overwritten during the transfer sends bytes of two
  /// versions.
  func finish() throws(BlobError) {
    awaitEndOfAnswer()
    endAnswer()
    let now = try file.facts(cancel)
    if now.version == facts.version, now.length == facts.length { return }
    throw BlobError(.changed, "\(file.ask.url): it was replaced while it was read")
  }
}

/// Reads from the single download.
private final class SinglePassReader: BlobReader {
  let info: BlobInfo
  private let file: RemoteFile
  private let fetch: RemoteFetch
  private let reader: any BlobReader
  private let promised: ExpectedLength
  private var offset: Int64
  /// The end of the connection will be ambiguous, and `notice` has not been called yet.
  private var isEndDoubtful: Bool

  init(_ file: RemoteFile, _ fetch: RemoteFetch, _ reader: any BlobReader, _ facts: RemoteFacts, at offset: Int64) {
    self.file = file
    self.fetch = fetch
    self.reader = reader
    self.offset = offset
    info = facts.info(tellingTimes: file.tellsTimes)
    isEndDoubtful = facts.endsByClosing
    promised = ExpectedLength("a download", info.length)
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

  /// The code stays `.invalidated`: the caller may start again at byte 0, and at no other offset.
  private func cut(_ error: BlobError) -> BlobError {
    var error = error
    let length = info.length.map { " of \($0)" } ?? ""
    error.message =
      "\(error.message). The download was cut at byte \(offset)\(length), and the rest alone cannot be asked for, since the "
      + "server does not name the version of the file (by a strong ETag, or a Last-Modified that is a minute old), or gives "
      + "no ranges of it. If it never comes through in one go, download the file to a disk, and use it from there"
    return error
  }

  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try reader.finish() }
}
