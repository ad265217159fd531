import Blobs
import Synchronization

/// One upload under way: the loop of asking, sending and recovering.
struct UploadRun {
  private let uploader: Uploader
  private let source: any BlobSource
  private let info: BlobInfo
  private let target: UploadTarget
  private let entry: Int64?
  private let progress: Progress
  private var plan: PartPlan
  private let context: UploadContext
  private var session: UploadSession?
  /// One that is known from an interim answer, to a creation that may yet fail.
  private let opened = OpenedSession()
  /// What must be compared before the session goes on; nil: nothing.
  private var doubted: [SentRange]?
  /// Of a dialect that numbers its parts; nil: it counts in offsets, or has not said yet.
  private var parts: NumberedParts?
  private let receipts: [PartReceipt]
  /// The source as it is sent in this session: with what is sent kept in the journal, where that is of use.
  private var traced: (any BlobSource)?
  /// What the server holds; nil: it must be asked.
  private var offset: Int64?
  /// Where a source of unknown length was found to end.
  private var end: Int64?
  /// The furthest the server has acknowledged in this session.
  private var best: Int64 = 0
  private var failures = 0
  /// Sessions that were lost. Not forgotten when bytes are acknowledged: a server that loses every session would be
  /// sent the same bytes for ever.
  private var restarts = 0
  private var part = 1
  private var isResuming: Bool

  init(
    _ uploader: Uploader, _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget, _ entry: Int64?,
    _ session: UploadSession?, _ receipts: [PartReceipt], comparing doubted: [SentRange]?, _ progress: Progress
  ) {
    self.uploader = uploader
    self.source = source
    self.info = info
    self.target = target
    self.entry = entry
    self.session = session
    self.receipts = session == nil ? [] : receipts
    self.doubted = session == nil ? nil : doubted
    isResuming = session != nil
    self.progress = progress
    // Where the end is not known, a part of the wanted size may end before it is full: all goes in one.
    let limits = uploader.destination.limits
    let plan = PartPlan(
      length: info.length, wanted: info.length == nil ? nil : uploader.partSize ?? limits.usual, limits: limits)
    self.plan = plan
    if let length = info.length, let size = session?.partSize {
      self.plan = PartPlan(length: length, partSize: size)
    }
    let journal = uploader.journal
    var context = uploader.context(
      opened: { [opened] session in
        var session = session
        if limits.isParallel, session.partSize == nil { session.partSize = plan.partSize }
        opened.withLock { $0 = session }
        if let entry { journal?.opened(entry, session) }
      },
      sent: { progress.advance(by: Int64($0)) })
    context.whole = BlobSlice(source, length: info.length, validator: info.validator)
    self.context = context
  }

  private var dialect: any UploadProtocol { uploader.destination.dialect }

  mutating func run() async throws(UploadError) -> UploadResult {
    while true {
      do {
        if let result = try await step() {
          progress.settle(at: info.length ?? end ?? progress.sent)
          return result
        }
      } catch {
        try await recover(from: error)
      }
    }
  }

  /// One request: create, ask, send or complete, whichever comes next. Returns the result once there is one.
  private mutating func step() async throws(UploadError) -> UploadResult? {
    guard let session else { return try await create() }
    guard let offset else {
      let held = try await dialect.held(by: session, context)
      if let doubted, try await !stillHas(doubted, held, session) { return nil }
      return try await take(held)
    }
    if parts != nil { return try await stepParts(session) }
    guard let next = next(from: offset) else { return try await dialect.complete(session, [], context) }
    // Only what was read tells where an open end is.
    let counting = next.length == nil ? CountingSource(source) : nil
    let body = BlobSlice(
      counting ?? trace(from: offset), start: next.start, length: next.length, validator: info.validator)
    switch try await dialect.send(next, body, to: session, context) {
    case .finished(let result): return result
    case .receipt(let receipt, let session):
      if let counting, receipt.held == counting.count {
        end = receipt.start + receipt.held
      } else if receipt.held == 0 {
        throw UploadError(.resync, .destination, "\(target.url): the server kept nothing of what was sent")
      }
      advance(to: receipt.start + receipt.held, session)
      part += 1
      return nil
    }
  }

  /// The last part of a source of unknown length is empty: it tells the length.
  private func next(from offset: Int64) -> Part? {
    guard let end else { return plan.part(from: offset, number: part) }
    return Part(number: part, start: offset, length: max(0, end - offset), isLast: true)
  }

  private mutating func create() async throws(UploadError) -> UploadResult? {
    var first: (part: Part, body: BlobSlice)?
    let most = uploader.destination.limits.firstPart
    if most > 0, info.length ?? .max <= most {
      let whole = Part(number: 1, start: 0, length: info.length, isLast: true)
      first = (whole, BlobSlice(source, length: info.length, validator: info.validator))
    }
    let held = try await dialect.create(target, first: first, context)
    let result = try await take(held)
    // The session must outlive us before anything is sent into it.
    if result == nil, entry != nil { try await uploader.journal?.flushed() }
    return result
  }

  private mutating func take(_ held: Held) async throws(UploadError) -> UploadResult? {
    switch held {
    case .finished(let result):
      if isResuming { progress.resume(at: info.length ?? 0) }
      return result
    case .upTo(let offset, let session):
      if isResuming { progress.resume(at: offset) }
      isResuming = false
      advance(to: offset, session)
      return nil
    case .parts(let theirs, let session):
      try await take(theirs, session)
      return nil
    }
  }

  private mutating func advance(to offset: Int64, _ session: UploadSession) {
    self.session = session
    self.offset = offset
    if offset > best {
      best = offset
      failures = 0
    }
    progress.settle(at: offset)
    if let entry { uploader.journal?.acknowledged(entry, offset) }
  }

  /// Sets the stage for the next step and waits, or throws for good.
  private mutating func recover(from error: UploadError) async throws(UploadError) {
    if error.recovery == .giveUp { throw uploader.destination.acquaintance.judge(refusal: error) }
    failures += 1
    offset = nil
    // A numbered dialect notes there what it expects to have made.
    if session == nil || parts != nil { session = opened.withLock { $0 } ?? session }
    if error.recovery == .restart { restart() }
    if session == nil { progress.restart() }
    try await uploader.wait(after: error, max(failures, restarts), "\(target.path)")
  }

  private mutating func restart() {
    restarts += 1
    session = nil
    opened.withLock { $0 = nil }
    parts = nil
    traced = nil
    isResuming = false
    best = 0
    if let entry { uploader.journal?.restarted(entry) }
    settleDoubt()
  }
}

// Parts with numbers, sent in any order.
extension UploadRun {
  /// Notes what the server has. What it does not say as our receipts do is sent again, unless a digest shows it to be ours.
  private mutating func take(_ theirs: [PartReceipt], _ session: UploadSession) async throws(UploadError) {
    var session = session
    if session.partSize == nil { session.partSize = plan.partSize }
    guard let length = info.length, let size = session.partSize else {
      throw UploadError(.giveUp, .file, "\(target.path): parts with numbers need a length that is known")
    }
    plan = PartPlan(length: length, partSize: size)
    var parts = parts ?? NumberedParts(known: receipts)
    parts.held = [:]
    for receipt in ours(of: theirs, parts) { parts.take(receipt) }
    for receipt in fitting(theirs) where parts.held[receipt.number] == nil && parts.known[receipt.number] == nil {
      if source.access == .random, try await [receipt].match(source, info.validator) { parts.take(receipt) }
    }
    self.parts = parts
    if isResuming { progress.resume(at: parts.bytes) }
    isResuming = false
    advance(to: parts.bytes, session)
  }

  /// Those of the plan, by their length.
  private func fitting(_ theirs: [PartReceipt]) -> [PartReceipt] {
    theirs.filter { receipt in
      guard let size = plan.partSize, receipt.number > 0, Int64(receipt.number) <= Int64.max / size else {
        return false
      }
      let start = Int64(receipt.number - 1) * size
      return receipt.start == start && plan.part(from: start, number: receipt.number)?.length == receipt.held
    }
  }

  /// Those that are the ones we have receipts for.
  private func ours(of theirs: [PartReceipt], _ parts: NumberedParts) -> [PartReceipt] {
    fitting(theirs).compactMap { receipt in
      guard let known = parts.known[receipt.number], known.state["etag"] == receipt.state["etag"],
        known.digest == nil || receipt.digest == nil || known.digest! == receipt.digest!
      else { return nil }
      return known
    }
  }

  /// Sends what the server lacks, or completes what it has.
  private mutating func stepParts(_ session: UploadSession) async throws(UploadError) -> UploadResult? {
    let planned = plan.numbered() ?? []
    let held = parts?.held ?? [:]
    let missing = planned.filter { held[$0.number] == nil }
    if missing.isEmpty {
      return try await dialect.complete(session, planned.compactMap { held[$0.number] }, context)
    }
    let sender = PartSender(
      uploader: uploader, source: source, validator: info.validator, session: session, context: context,
      progress: progress, name: target.path, entry: entry)
    let isOneByOne = source.access == .sequential || !uploader.destination.limits.isParallel
    let (receipts, failure) = await sender.send(missing, atOnce: isOneByOne ? 1 : uploader.partsAtOnce)
    for receipt in receipts { parts?.take(receipt) }
    advance(to: parts?.bytes ?? 0, session)
    if let failure { throw failure }
    return nil
  }
}

// What keeps two versions of a source apart, from one run to the next.
extension UploadRun {
  /// Whether the source still has what the server holds of it. If not, all begins anew; the old session is given up.
  private mutating func stillHas(
    _ ranges: [SentRange], _ held: Held, _ session: UploadSession
  ) async throws(UploadError) -> Bool {
    let end: Int64
    switch held {
    case .upTo(let offset, _): end = offset
    case .parts(let theirs, _):
      let ours = ours(of: theirs, NumberedParts(known: receipts))
      if try await ours.match(source, info.validator) {
        settleDoubt()
        return true
      }
      await uploader.discard(session)
      restart()
      return false
    case .finished: end = info.length ?? .max
    }
    if try await match(ranges, upTo: end) {
      settleDoubt()
      return true
    }
    // What is published stays: the server compares it with what comes.
    if case .upTo = held { await uploader.discard(session) }
    restart()
    return false
  }

  private func match(_ ranges: [SentRange], upTo end: Int64) async throws(UploadError) -> Bool {
    let cancel = Cancellation()
    let result = await withTaskCancellationHandler { [source, info] in
      await BlockingPool.shared.run {
        Result { () throws(BlobError) in try ranges.match(source, info, upTo: end, cancel) }
      }
    } onCancel: {
      cancel.cancel()
    }
    do { return try result.get() } catch { throw UploadError(error) }
  }

  private mutating func settleDoubt() {
    if doubted == nil { return }
    doubted = nil
    if let entry, let validator = info.validator { uploader.journal?.recognized(entry, validator) }
  }

  /// Only a session that the next run can go on with needs it, and a version that it can know again.
  private mutating func trace(from offset: Int64) -> any BlobSource {
    guard let entry, let journal = uploader.journal, info.validator != nil, info.length != nil else { return source }
    if let traced { return traced }
    let key = Poly1305.newKey()
    let source = TracedSource(source, from: offset, key: key, journal.sending(entry, from: offset, key: key))
    traced = source
    return source
  }
}

/// Set on the transport's thread.
private final class OpenedSession: Sendable {
  private let session = Mutex<UploadSession?>(nil)
  func withLock<Result: Sendable>(_ body: (inout UploadSession?) -> Result) -> Result { session.withLock { body(&$0) } }
}
