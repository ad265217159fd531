import BlobHTTP
import Blobs

/// One upload under way: the loop of asking, sending and recovering. Of one task.
final class UploadRun {
  let engine: UploadEngine
  let source: SpooledSource
  let target: UploadTarget
  let ledger: (any UploadLedger)?
  let context: UploadContext
  let progress: Progress
  var session: UploadSession?
  /// What its requests report.
  let tracker: UploadTracker
  /// What must be compared before the session goes on; nil: nothing.
  var doubted: [SentRange]?
  /// Of a dialect that numbers its parts; nil: it counts in offsets, or has not said yet.
  var parts: NumberedParts?
  let receipts: [PartReceipt]
  /// The source as it is sent in this session: with what is sent kept in the journal, where that is of use.
  var traced: (any BlobSource)?
  /// What the server holds; nil: it must be asked.
  var offset: Int64?
  /// Where a source of unknown length was found to end.
  private(set) var end: Int64?
  /// No byte from it on was handed to a connection in this session, by this run or an earlier one; nil: it is not known
  /// how many an earlier run has sent, and the server has not been asked yet how far it got.
  var sentEnd: Int64?
  /// The server may still be at work on bytes of an earlier request for this session, whose answer was lost.
  var mayBeReceiving: Bool
  /// Bytes of the body that was sent last, or as many as it might have had.
  var attempted: Int64 = 0
  /// The body that was sent last reaches to the end of the source.
  var attemptedLast = false
  /// Parts of unknown length are read ahead, because the server must know the length of each body.
  var measures: Bool
  /// The furthest the server has acknowledged in this session.
  var best: Int64 = 0
  var failures = FailureCount()
  /// What broke off the latest request that failed.
  private(set) var interruption: UploadError?
  /// Sessions that were lost. Not forgotten when bytes are acknowledged: a server that loses every session would be
  /// sent the same bytes for ever.
  var restarts = 0
  var bounds = RecoveryBounds()
  private var part = 1
  var isResuming: Bool
  /// A creation that carried the file broke on the way: the next one carries nothing, so that what arrives can be resumed.
  var createsEmpty = false
  /// OPTIONS told no limits, and the server has told one with a refusal: it knows uploads in parts.
  var takesParts = false
  /// Uploads that the server did not know when it was first asked for them, right after it had created them.
  var unknownCreations = UnknownCreations()

  init(
    _ engine: UploadEngine, _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget,
    _ ledger: (any UploadLedger)?, _ session: UploadSession?, _ receipts: [PartReceipt],
    comparing doubted: [SentRange]?,
    sentAtMost limit: Int64? = nil, _ progress: Progress
  ) {
    self.engine = engine
    let source = SpooledSource(source, info, engine.uploader.spool)
    self.source = source
    self.target = target
    self.ledger = ledger
    self.session = session
    self.receipts = session == nil ? [] : receipts
    self.doubted = session == nil ? nil : doubted
    // Of a source without a version nobody can say that it still ends there.
    end = info.length == nil && info.validator != nil ? session?.sourceEnd : nil
    // Where the server's word tells how far an upload is, it is held against what earlier runs may have sent.
    let isBelieved = engine.uploader.destination.traits.resumesCreations
    sentEnd = session == nil ? 0 : isBelieved ? limit : nil
    mayBeReceiving = session != nil
    isResuming = session != nil
    let destination = engine.uploader.destination
    measures = destination.traits.needsBodyLengths || destination.digestsAhead
    self.progress = progress
    let size =
      engine.uploader.destination.traits.numbersParts ? Self.plan(engine.uploader, source, info, nil).partSize : nil
    tracker = UploadTracker(
      source, progress, ledger, partSize: size, notesCreation: isBelieved && !Self.isTraced(source, info))
    var context = engine.context(tracker)
    if engine.uploader.destination.traits.digests == .trailing { context.isLocal = source.source.isLocal }
    context.source = source
    self.context = context
  }

  var info: BlobInfo { _read { yield source.info } }
  var uploader: Uploader { _read { yield engine.uploader } }
  var dialect: any UploadProtocol { _read { yield engine.uploader.destination.dialect } }

  /// The tightest of what the server has said, what went through, and what can be held.
  var plan: PartPlan { Self.plan(engine.uploader, source, info, session) }

  private static func plan(
    _ uploader: Uploader, _ source: SpooledSource, _ info: BlobInfo, _ session: UploadSession?
  ) -> PartPlan {
    // Numbers belong to the plan that they began with.
    if let size = session?.partSize, let length = info.length { return PartPlan(length: length, partSize: size) }
    var limits = uploader.destination.currentLimits
    if let session { limits.tighten(by: session.limits) }
    var wanted = uploader.partSize ?? (info.length == nil ? nil : limits.usual)
    if let most = source.largestPart { wanted = min(wanted ?? most, most) }
    return PartPlan(length: info.length, wanted: wanted, limits: limits)
  }

  func run() async throws(UploadError) -> UploadResult {
    while true {
      do {
        if var result = try await step() {
          try storedCheck.check(result)
          let length = info.length ?? end ?? progress.sent
          result.length = length
          uploader.destination.acquaintance.existing.note(wasThere: result.wasThere)
          // What the server had before is no doing of this run.
          if progress.hasSent, !result.wasThere { progress.settle(at: length) } else { progress.resume(at: length) }
          return result
        }
      } catch {
        interruption = error
        do throws(UploadError) {
          try await recover(from: error)
        } catch {
          await giveUp(after: error)
          throw error
        }
      }
    }
  }

  /// One request: create, ask, send or complete, whichever comes next. Returns the result once there is one.
  private func step() async throws(UploadError) -> UploadResult? {
    guard let session else { return try await create() }
    guard let offset else {
      let held = try await dialect.held(by: session, context)
      unknownCreations.noteAnswer()
      if let doubted, try await !stillHas(doubted, held, session) { return nil }
      return try await take(held)
    }
    if parts != nil { return try await stepParts(session) }
    guard let next = try await next(from: offset) else { return try await dialect.complete(session, [], context) }
    try checkPartCount(next)
    let told = try await rememberEnd(session)
    // Only what is read tells where an open end is. The last part goes on to the end of the source: the server keeps it
    // whole or not at all, so it cannot wait for acknowledgements that would make room in the spool.
    let open =
      info.length == nil && end == nil && !(measures && next.length != nil)
      ? OpenPart(
        source.source, from: offset, length: next.length,
        room: { [source] in next.isLast ? .max : source.room(at: $0) }) : nil
    if open != nil { tracker.noteSending(from: offset) }
    let body = BlobSlice(
      open ?? trace(from: offset), start: offset, length: open == nil ? next.length : nil, validator: info.validator)
    (attempted, attemptedLast) = (next.length ?? .max, next.isLast)
    let answer = try await send(next, body, to: told)
    unknownCreations.noteAnswer()
    await rememberOverride()
    if let open, let end = open.end { self.end = end }
    switch answer {
    case .finished(let result): return result
    case .receipt(let receipt, let session):
      // A server that does not say how much it has kept has kept what was sent.
      let sent = open.map { $0.reached - offset } ?? attempted
      let held = receipt.held == PartReceipt.all ? sent : receipt.held
      try storedCheck.check(held: offset + held)
      if held == 0, end != offset || open == nil {
        // A server that knows nothing of chunked bodies takes them for empty.
        if open != nil, next.length != nil { measures = true }
        throw keepsNothing(of: sent, from: offset)
      }
      let isFair = advance(to: offset + held, session)
      part += 1
      if held < sent, !isFair { throw keepsLittle(held, of: sent, from: offset) }
      return nil
    }
  }

  /// What is to be sent from `offset` on; nil: nothing is left. Where the end is not known, it is looked for first: the
  /// last part tells the length, and is empty if it must be.
  private func next(from offset: Int64) async throws(UploadError) -> Part? {
    if offset < source.first, await !source.rewind() { throw lost(from: offset) }
    try await source.skip(to: offset, info.validator)
    if let end { return Part(number: part, start: offset, length: max(0, end - offset), isLast: true) }
    guard let next = plan.part(from: offset, number: part), info.length == nil, let length = next.length else {
      return plan.part(from: offset, number: part)
    }
    let wanted = measures ? length : 1
    let there = try await source.look(from: offset, wanted, info.validator)
    if there == wanted { return isAcknowledgedOnTheWay ? endless(next) : next }
    end = offset + there
    return Part(number: part, start: offset, length: there, isLast: true)
  }

  /// Notes where a source of unknown length ends, before the server is told: it may say so later, and only what we have
  /// told it is believed.
  private func rememberEnd(_ session: UploadSession) async throws(UploadError) -> UploadSession {
    guard info.length == nil, let end, session.sourceEnd != end else { return session }
    var session = session
    session.sourceEnd = end
    self.session = session
    context.opened(session)
    try await ledger?.flush()
    return session
  }

  private func create() async throws(UploadError) -> UploadResult? {
    var first: FirstPart?
    var open: OpenPart?
    var most = uploader.destination.currentLimits.firstPart
    // What goes in one can also go in parts, which can be sent again.
    if most != .max, let held = source.largestPart { most = min(most, held) }
    // What is held whole is sent again from there.
    if let length = info.length, source.holds(length), uploader.destination.traits.numbersParts {
      most = uploader.destination.currentLimits.largest ?? .max
    }
    if createsEmpty && most != .max || takesParts, uploader.destination.traits.resumesCreations { most = 0 }
    if most > 0, info.length ?? .max <= most {
      let whole = Part(number: 1, start: 0, length: info.length, isLast: true)
      // Only what is read tells where a source of unknown length ends.
      if info.length == nil { open = OpenPart(source.source, from: 0, length: nil) }
      let body: any BlobSource = open ?? (info.wantsTrace ? trace(from: 0) : source.source)
      first = FirstPart(whole, BlobSlice(body, length: info.length, validator: info.validator))
    }
    (attempted, attemptedLast) = (first.map { $0.part.length ?? .max } ?? 0, first != nil)
    let held = try await create(with: first)
    if let open { end = open.end }
    let result = try await take(held)
    if result == nil { unknownCreations.noteCreation() }
    // The session must outlive us before anything is sent into it.
    if result == nil { try await ledger?.flush() }
    return result
  }

  private func send(_ part: Part, _ body: BlobSlice, to session: UploadSession) async throws(UploadError) -> Sent {
    tracker.begin(at: part.start)
    defer { noteSent(from: part.start, atMost: attempted) }
    return try await dialect.send(part, body, to: session, context)
  }

  private func create(with first: FirstPart?) async throws(UploadError) -> Held {
    tracker.begin(at: 0)
    defer { noteSent(from: 0, atMost: attempted) }
    return try await dialect.create(target, first: first, context)
  }

  private func take(_ held: Held) async throws(UploadError) -> UploadResult? {
    switch held {
    case .finished(let result):
      if isResuming { progress.resume(at: info.length ?? 0) }
      return result
    case .upTo(let offset, let session):
      try storedCheck.check(held: offset)
      sentEnd = sentEnd ?? offset
      if isResuming { progress.resume(at: offset) }
      isResuming = false
      advance(to: offset, session)
      return nil
    case .parts(let theirs, let session):
      try await take(theirs, session)
      return nil
    }
  }

  /// false: the server holds more than before, but so little of what it was sent that the failures stay counted.
  @discardableResult func advance(to offset: Int64, _ session: UploadSession) -> Bool {
    self.session = session
    tracker.session = session
    self.offset = offset
    let isFair = offset <= best || failures.noteKept(offset - best)
    if isFair, offset > best { bounds.noteProgress() }
    best = max(best, offset)
    // Parts with numbers are not all before it.
    if parts == nil { source.acknowledge(offset) }
    progress.settle(at: offset)
    ledger?.acknowledged(offset)
    return isFair
  }
}
