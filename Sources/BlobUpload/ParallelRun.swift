import BlobHTTP
import Blobs
import Synchronization

/// One large file in parts that are uploads of their own, several at once; the server makes one of them in the end.
///
/// Each part is asked, sent and recovered as any upload is, by an `UploadRun`; the receipts in the journal say where.
struct ParallelRun {
  /// Parts of a file at the most: their URLs must fit into one field of a request.
  static let most: Int64 = 64

  let engine: UploadEngine
  let tus: Tus
  let source: any BlobSource
  let info: BlobInfo
  let length: Int64
  let target: UploadTarget
  let ledger: (any UploadLedger)?
  let progress: Progress
  /// Bytes of each part but the last.
  let size: Int64
  var parts: [UploadPart]
  /// The upload that the server has put the parts together to; nil: it has not been asked for, or has not answered.
  var joined: HTTPURL?
  /// Parts of an earlier run that the server has not been asked for yet.
  private let unasked: UnaskedParts

  /// A run that goes on with what an earlier one has left; `session` nil: a new one.
  init(
    _ engine: UploadEngine, _ tus: Tus, _ source: any BlobSource, _ info: BlobInfo, length: Int64,
    to target: UploadTarget,
    _ ledger: (any UploadLedger)?, _ session: UploadSession?, _ receipts: [PartReceipt], _ progress: Progress
  ) {
    self.engine = engine
    self.tus = tus
    self.source = source
    self.info = info
    self.length = length
    self.target = target
    self.ledger = ledger
    self.progress = progress
    let size = session?.sizeOfParts ?? Self.size(of: length, smallest: engine.uploader.smallestPart)
    self.size = size
    joined = session?.joined
    parts = (0..<Self.count(of: length, size)).map { number in
      let start = number * size
      let receipt = receipts.first { $0.number == Int(number) + 1 && $0.start == start }
      return UploadPart(
        number: Int(number) + 1, start: start, length: min(size, length - start),
        url: receipt?.state["url"].flatMap { HTTPURL($0) }, progress: Progress(partOf: progress))
    }
    unasked = UnaskedParts(parts.filter { $0.url != nil }.map(\.number))
  }

  var uploader: Uploader { _read { yield engine.uploader } }

  /// In quarters of the smallest part, which are whole MiB.
  static func size(of length: Int64, smallest: Int64 = 4 << 20) -> Int64 {
    let unit = smallest / 4
    return max(smallest, count(of: count(of: length, most), unit) * unit)
  }

  /// How many pieces of `size` bytes, the last of which may be smaller. Not rounded up by adding, which may overflow.
  static func count(of length: Int64, _ size: Int64) -> Int64 { length <= 0 ? 0 : (length - 1) / size + 1 }

  /// nil: the server does not take it in parts after all; nothing was sent.
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
        // What it has forgotten of the parts is found by asking for them all, once.
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

  /// Creates the first part alone: it shows whether parts are taken. false: they are not.
  private mutating func begin() async throws(UploadError) -> Bool {
    ledger?.opened(UploadSession(parts: size, length: length))
    try await ledger?.flush()
    let part = parts[0]
    let partLedger = ledger.map { part.ledger($0, of: progress, unasked) }
    let context = engine.context(LedgerEvents(partLedger))
    let target = target(of: part)
    do {
      let held = try await uploader.patiently("\(target.path)") { [tus] () async throws(UploadError) in
        try await tus.forParts.create(target, first: nil, context)
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

  /// Sends all that are not there, several at once. Returns what keeps the first of them from arriving.
  private mutating func sendParts() async -> UploadError? {
    let missing = parts.filter { !$0.isWhole }
    let (arrived, failure) = await uploader.atOnce(missing, bytes: \.length) { [run = self] part in
      await run.send(part).map { (index: part.number - 1, url: $0) }
    }
    for part in arrived { (parts[part.index].url, parts[part.index].isWhole) = (part.url, true) }
    return failure
  }

  private func send(_ part: UploadPart) async -> Result<HTTPURL, UploadError> {
    var one = engine.uploader
    one.destination.dialect = tus.forParts
    // Its URL is known before its first byte, so that all that arrives of it counts.
    one.destination.limits.firstPart = 0
    let slice = SlicedSource(source, start: part.start, length: part.length, validator: info.validator)
    let target = target(of: part)
    let session = part.url.map { UploadSession(state: ["url": $0.text, "length": String(part.length)]) }
    do throws(UploadError) {
      let info = try await readingSource { cancel, _ throws(BlobError) in try slice.info(cancel) }
      let run = UploadRun(
        UploadEngine(one), slice, info, target, ledger.map { part.ledger($0, of: progress, unasked) }, session, [],
        comparing: nil,
        part.progress)
      if part.isNew { (run.sentEnd, run.mayBeReceiving) = (0, false) }
      let result = try await run.run()
      // The answer that ends a part is no acknowledgement to its run.
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

/// A part of a file that is an upload of its own.
struct UploadPart: Sendable {
  /// From 1 up.
  var number: Int
  var start: Int64
  var length: Int64
  /// nil: it is not created yet.
  var url: HTTPURL?
  /// Created by this run, and nothing of it was sent yet.
  var isNew = false
  var isWhole = false
  var progress: Progress

  /// The part's share in what is kept of the whole.
  fileprivate func ledger(_ whole: any UploadLedger, of progress: Progress, _ unasked: UnaskedParts) -> any UploadLedger
  {
    PartLedger(whole, progress, unasked, number: number, start: start)
  }
}

/// Which parts of an earlier run the server has still to be asked for. Until it was asked for all of them, the sum of what
/// it is known to hold leaves some out.
private final class UnaskedParts: Sendable {
  private let numbers: Mutex<Set<Int>>

  init(_ numbers: [Int]) { self.numbers = Mutex(Set(numbers)) }

  /// Notes that the server has told of a part. True once it has told of all.
  func isLast(_ number: Int) -> Bool {
    numbers.withLock { numbers in
      numbers.remove(number)
      return numbers.isEmpty
    }
  }
}

/// Keeps the session of a part that is created.
private final class LedgerEvents: UploadEvents {
  private let ledger: (any UploadLedger)?

  init(_ ledger: (any UploadLedger)?) { self.ledger = ledger }

  func opened(_ session: UploadSession) { ledger?.opened(session) }
  func acknowledged(_ offset: Int64) {}
  func sent(_ count: Int) {}
}

/// Of a part, only that it is there is kept; of the whole, how far it is.
private final class PartLedger: UploadLedger {
  private let whole: any UploadLedger
  private let progress: Progress
  private let unasked: UnaskedParts
  private let number: Int
  private let start: Int64

  init(_ whole: any UploadLedger, _ progress: Progress, _ unasked: UnaskedParts, number: Int, start: Int64) {
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
  /// It may take the same file in one piece.
  fileprivate var isOfParts: Bool {
    guard case .giveUp = recovery, let status else { return false }
    return [400, 403, 404, 405, 409, 412, 415, 422, 501].contains(status)
  }
}
