import Blobs

/// One upload under way: the loop of asking, sending and recovering.
struct UploadRun {
  private let uploader: Uploader
  private let source: any BlobSource
  private let info: BlobInfo
  private let target: UploadTarget
  private let entry: Int64?
  private let progress: Progress
  private let plan: PartPlan
  private let context: UploadContext
  private var session: UploadSession?
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
    _ session: UploadSession?, _ progress: Progress
  ) {
    self.uploader = uploader
    self.source = source
    self.info = info
    self.target = target
    self.entry = entry
    self.session = session
    isResuming = session != nil
    self.progress = progress
    // Where the end is not known, a part of the wanted size may end before it is full: all goes in one.
    let limits = uploader.destination.limits
    plan = PartPlan(
      length: info.length, wanted: info.length == nil ? nil : uploader.partSize ?? limits.usual, limits: limits)
    let journal = uploader.journal
    context = uploader.context(
      opened: { session in if let entry { journal?.opened(entry, session) } },
      sent: { progress.advance(by: Int64($0)) })
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
    guard let offset else { return try take(await dialect.held(by: session, context)) }
    guard let next = next(from: offset) else { return try await dialect.complete(session, [], context) }
    // Only what was read tells where an open end is.
    let counting = next.length == nil ? CountingSource(source) : nil
    let body = BlobSlice(counting ?? source, start: next.start, length: next.length, validator: info.validator)
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
    let result = try take(held)
    // The session must outlive us before anything is sent into it.
    if result == nil, entry != nil { try await uploader.journal?.flushed() }
    return result
  }

  private mutating func take(_ held: Held) throws(UploadError) -> UploadResult? {
    switch held {
    case .finished(let result):
      if isResuming { progress.resume(at: info.length ?? 0) }
      return result
    case .upTo(let offset, let session):
      if isResuming { progress.resume(at: offset) }
      isResuming = false
      advance(to: offset, session)
      return nil
    case .parts:
      throw UploadError(
        .giveUp, .destination, "\(target.url): \(dialect.name) keeps numbered parts, which is not done yet")
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
    if error.recovery == .restart { restart() }
    if session == nil { progress.restart() }
    try await uploader.wait(after: error, max(failures, restarts), "\(target.path)")
  }

  private mutating func restart() {
    restarts += 1
    session = nil
    isResuming = false
    best = 0
    if let entry { uploader.journal?.restarted(entry) }
  }
}
