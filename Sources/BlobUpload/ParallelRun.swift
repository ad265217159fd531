import BlobHTTP
import Blobs
import Synchronization

/// Sends one large file in parts that are separate uploads, several at a time; the server concatenates them at the end.
///
/// An `UploadRun` queries, sends and recovers each part like any other upload; the receipts in the journal contain the
/// parts' URLs.
struct ParallelRun {
  /// Maximum number of parts of a file: their URLs must fit into one header field.
  static let most: Int64 = 64

  let engine: UploadEngine
  let concatenation: any UploadConcatenation
  let source: any BlobSource
  let info: BlobInfo
  var target: UploadTarget
  let ledger: (any UploadLedger)?
  let progress: UploadProgress
  /// Size of each part in bytes, except for the last one.
  let size: Int64
  var parts: [UploadPart]
  /// The upload that the server has made of the parts; nil: the server was not asked yet, or has not responded.
  var joined: HTTPURL?
  /// Parts of an earlier run that the server was not queried for yet.
  private let unasked: UnaskedParts
  var replacement = Replacement()

  /// Continues what an earlier run has left; `session` nil: starts a new upload.
  init(
    _ engine: UploadEngine, _ concatenation: any UploadConcatenation, _ source: any BlobSource, _ info: BlobInfo,
    length: Int64, to target: UploadTarget, _ ledger: (any UploadLedger)?, _ session: UploadSession?,
    _ receipts: [PartReceipt], _ progress: UploadProgress
  ) {
    self.engine = engine
    self.concatenation = concatenation
    self.source = source
    self.info = info
    self.target = target
    self.ledger = ledger
    self.progress = progress
    let size = session?.sizeOfParts ?? Self.size(of: length, smallest: engine.uploader.splitting.smallestPart)
    self.size = size
    joined = session?.joined
    parts = (0..<Self.count(of: length, size)).map { number in
      let start = number * size
      let receipt = receipts.first { $0.number == Int(number) + 1 && $0.start == start }
      return UploadPart(
        number: Int(number) + 1, start: start, length: min(size, length - start),
        url: receipt?.state["url"].flatMap { HTTPURL($0) }, progress: UploadProgress(partOf: progress))
    }
    unasked = UnaskedParts(parts.filter { $0.url != nil }.map(\.number))
  }

  /// A file in parts has a known length.
  var length: Int64 { info.length ?? 0 }
  var uploader: Uploader { _read { yield engine.uploader } }

  /// A multiple of a quarter of the smallest part, which is a whole number of MiB.
  static func size(of length: Int64, smallest: Int64 = 4 << 20) -> Int64 {
    let unit = smallest / 4
    return max(smallest, count(of: count(of: length, most), unit) * unit)
  }

  /// The number of parts of `size` bytes, the last of which may be smaller. Written without an addition that could
  /// overflow.
  static func count(of length: Int64, _ size: Int64) -> Int64 { length <= 0 ? 0 : (length - 1) / size + 1 }

  /// Sends the file. nil: the server does not accept parts after all, and nothing was sent.
  mutating func run() async throws(UploadError) -> UploadResult? {
    if parts.allSatisfy({ $0.url == nil }), try await !begin() { return nil }
    var failures = FailureCount()
    var hasAskedAgain = false
    while true {
      if let failure = await sendParts() { throw failure }
      do {
        let result = try await join()
        try StoredCheck(target: target, length: length, sent: parts.reduce(0) { $0 + ($1.isWhole ? $1.length : 0) })
          .check(result)
        progress.settle(at: length)
        return result
      } catch {
        if joined == nil, try replacement.isOutdated(error, isCreated: false, target, engine.context()) {
          if let result = try await stored() { return result }
          target.replaced = .unknown
          for index in parts.indices { (parts[index].isWhole, parts[index].isNew) = (false, false) }
          continue
        }
        // The server may have lost parts: all of them are queried again, once.
        if joined == nil, let status = error.status, [400, 404, 409, 410, 423].contains(status), !hasAskedAgain {
          hasAskedAgain = true
          if status == 409, let result = try await stored() { return result }
          for index in parts.indices { (parts[index].isWhole, parts[index].isNew) = (false, false) }
          continue
        }
        if case .giveUp = error.recovery { throw uploader.destination.acquaintance.judge(refusal: error) }
        try await uploader.wait(after: error, &failures, "\(target.path)")
      }
    }
  }

  /// Creates only the first part, to find out whether the server accepts parts. false: it does not.
  private mutating func begin() async throws(UploadError) -> Bool {
    ledger?.opened(UploadSession(parts: size, length: length))
    try await ledger?.flush()
    let part = parts[0]
    let partLedger = ledger.map { part.ledger($0, of: progress, unasked) }
    let context = engine.context(LedgerEvents(partLedger))
    let target = target(of: part)
    do {
      let held = try await uploader.patiently("\(target.path)") { [concatenation] () async throws(UploadError) in
        try await concatenation.ofParts.create(target, first: nil, context)
      }
      guard case .upTo(_, let session) = held else { return false }
      (parts[0].url, parts[0].isNew) = (try session.uploadURL(), true)
      return true
    } catch {
      if error.isOfParts { return false }
      throw error
    }
  }

  private func target(of part: UploadPart) -> UploadTarget {
    UploadTarget(
      endpoint: target.endpoint, url: target.url, path: target.path, length: part.length,
      contentType: target.contentType)
  }

  /// Sends all incomplete parts, several at a time. Returns the first failure; nil: all parts have arrived.
  private mutating func sendParts() async -> UploadError? {
    let missing = parts.filter { !$0.isWhole }
    let most = uploader.mostReaders(of: info)
    let (arrived, failure) = await uploader.atOnce(missing, atMost: most, bytes: \.length) { [run = self] part in
      await run.send(part).map { (index: part.number - 1, url: $0) }
    }
    for part in arrived { (parts[part.index].url, parts[part.index].isWhole) = (part.url, true) }
    return failure
  }

  private func send(_ part: UploadPart) async -> Result<HTTPURL, UploadError> {
    var one = engine.uploader
    one.destination.uploadProtocol = concatenation.ofParts
    // The part is created without content, so that its URL is known before its first byte and an interrupted part can
    // be resumed.
    one.destination.limits.firstPart = 0
    let slice = SlicedSource(source, start: part.start, length: part.length, validator: info.validator)
    let target = target(of: part)
    let session = part.url.map { UploadSession(state: ["url": $0.text, "length": String(part.length)]) }
    do throws(UploadError) {
      let info = try await readingSource { cancel, _ throws(BlobError) in try slice.info(cancel) }
      let run = UploadRun(
        UploadEngine(one), slice, info, target, ledger.map { part.ledger($0, of: progress, unasked) },
        resuming: EarlierUpload(session: session), part.progress)
      if part.isNew { run.transfer = TransferState() }
      let result = try await run.run()
      // The response that ends a part does not reach the run's ledger as an acknowledgement.
      run.ledger?.acknowledged(part.length)
      guard let url = result.location.flatMap({ HTTPURL($0) }) else {
        throw UploadError(.giveUp, .destination, "\(target.endpoint): a part that has arrived has no URL")
      }
      return .success(url)
    } catch {
      return .failure(error)
    }
  }
}

/// A part of a file that is a separate upload.
struct UploadPart: Sendable {
  /// Counted from 1.
  var number: Int
  var start: Int64
  var length: Int64
  /// nil: the part was not created yet.
  var url: HTTPURL?
  /// This run has created the part, and has sent nothing of it yet.
  var isNew = false
  var isWhole = false
  var progress: UploadProgress

  /// A ledger that records the part's events for the whole file.
  fileprivate func ledger(_ whole: any UploadLedger, of progress: UploadProgress, _ unasked: UnaskedParts)
    -> any UploadLedger
  {
    PartLedger(whole, progress, unasked, number: number, start: start)
  }
}

/// Parts of an earlier run that the server must still be queried for. Until all were queried, the sum of the known
/// bytes is too small.
private final class UnaskedParts: Sendable {
  private let numbers: Mutex<Set<Int>>

  init(_ numbers: [Int]) { self.numbers = Mutex(Set(numbers)) }

  /// Records that the server has reported a part. True once it has reported all of them.
  func isLast(_ number: Int) -> Bool {
    numbers.withLock { numbers in
      numbers.remove(number)
      return numbers.isEmpty
    }
  }
}

/// Records the session of a part when it is created.
private final class LedgerEvents: UploadEvents {
  private let ledger: (any UploadLedger)?

  init(_ ledger: (any UploadLedger)?) { self.ledger = ledger }

  func opened(_ session: UploadSession) { ledger?.opened(session) }
  func acknowledged(_ offset: Int64) {}
  func sent(_ count: Int) {}
}

/// Records only that a part exists, and for the whole file the acknowledged bytes.
private final class PartLedger: UploadLedger {
  private let whole: any UploadLedger
  private let progress: UploadProgress
  private let unasked: UnaskedParts
  private let number: Int
  private let start: Int64
  var entry: Int64? { whole.entry }

  init(_ whole: any UploadLedger, _ progress: UploadProgress, _ unasked: UnaskedParts, number: Int, start: Int64) {
    self.whole = whole
    self.progress = progress
    self.unasked = unasked
    self.number = number
    self.start = start
  }

  func opened(_ session: UploadSession) {
    let state = session.state.filter { $0.key == "url" }
    whole.receipt(PartReceipt(number: number, start: start, held: 0, state: state))
  }
  func acknowledged(_ offset: Int64) { if unasked.isLast(number) { whole.acknowledged(progress.acknowledged) } }
  func restarted() {}
  func abandoned() {}
  func recognized(_ validator: Validator) {}
  func receipt(_ receipt: PartReceipt) {}
  func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)? { nil }
  func flush() async throws(UploadError) { try await whole.flush() }
}

extension UploadError {
  /// The server may accept the same file as one upload.
  fileprivate var isOfParts: Bool {
    guard case .giveUp = recovery, let status else { return false }
    return [400, 403, 404, 405, 409, 412, 415, 422, 501].contains(status)
  }
}
