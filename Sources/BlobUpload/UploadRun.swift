import BlobHTTP
import Blobs

/// One running upload: the loop that queries the server, sends, and recovers from errors. Used by one task only.
final class UploadRun {
  let engine: UploadEngine
  let source: SpooledSource
  let target: UploadTarget
  let ledger: (any UploadLedger)?
  let context: UploadContext
  let progress: UploadProgress
  var session: UploadSession?
  /// Receives the events of the upload's requests.
  let tracker: UploadTracker
  /// Ranges that must be compared with the source before the session is resumed; nil: none.
  var doubted: [SentRange]?
  /// The state of numbered parts; nil: the protocol counts offsets, or the server has not responded yet.
  var parts: NumberedParts?
  let receipts: [PartReceipt]
  /// The source wrapped for this session so that checksums of the sent bytes are recorded in the journal; nil: not
  /// wrapped.
  var traced: (any BlobSource)?
  /// Offset up to which the server has the bytes; nil: the server must be queried.
  var offset: Int64?
  /// The offset at which a source of unknown length was found to end.
  private(set) var end: Int64?
  /// No byte from this offset on was handed to a connection in this session, by this run or an earlier one. nil: it is
  /// unknown how many an earlier run has sent, and the server has not been queried yet.
  var sentEnd: Int64?
  /// The server may still process bytes of an earlier request for this session whose response was lost.
  var mayBeReceiving: Bool
  /// Length of the body that was sent last, or the maximum that it could have.
  var attempted: Int64 = 0
  /// The body that was sent last extends to the end of the source.
  var attemptedLast = false
  /// How a source of unknown length is sent in numbered parts. No later run can resume such an upload. nil: the length
  /// is known, or the protocol counts offsets.
  let pipe: PipePlan?
  /// Parts of unknown length are read ahead, because each request must give the length of its body.
  var measures: Bool
  /// The highest offset that the server has acknowledged in this session.
  var best: Int64 = 0
  var failures = FailureCount()
  /// The error of the latest failed request.
  private(set) var interruption: UploadError?
  /// Number of lost sessions. Acknowledged bytes do not reset it: a server that loses every session would be sent the
  /// same bytes forever.
  var restarts = 0
  var bounds = RecoveryBounds()
  private var part = 1
  var isResuming: Bool
  /// A request that created an upload with the file's bytes was interrupted. The next one creates it without bytes, so
  /// that the upload can be resumed.
  var createsEmpty = false
  /// OPTIONS reported no limits, but a refusal did: the server supports uploads in parts.
  var takesParts = false
  /// Uploads that the server did not know at the first query, right after it had created them.
  var unknownCreations = UnknownCreations()

  init(
    _ engine: UploadEngine, _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget,
    _ ledger: (any UploadLedger)?, _ session: UploadSession?, _ receipts: [PartReceipt],
    comparing doubted: [SentRange]?, sentAtMost limit: Int64? = nil, pipe: PipePlan? = nil, _ progress: UploadProgress
  ) {
    self.engine = engine
    let source = SpooledSource(source, info, engine.uploader.spool)
    self.source = source
    self.target = target
    self.ledger = ledger
    self.session = session
    self.receipts = session == nil ? [] : receipts
    self.doubted = session == nil ? nil : doubted
    // Without a version, the source cannot be known to end at the same offset.
    end = info.length == nil && info.validator != nil ? session?.sourceEnd : nil
    // If the upload can be resumed after its creation, the offset that the server reports is checked against the bytes
    // that earlier runs may have sent.
    let isBelieved = engine.uploader.destination.traits.resumesCreations
    sentEnd = session == nil ? 0 : isBelieved ? limit : nil
    mayBeReceiving = session != nil
    isResuming = session != nil
    let destination = engine.uploader.destination
    self.pipe = pipe
    measures = destination.traits.needsBodyLengths || destination.digestsAhead || pipe != nil
    self.progress = progress
    let size =
      !engine.uploader.destination.traits.numbersParts
      ? nil : pipe?.partSize ?? Self.plan(engine.uploader, source, info.length, nil).partSize
    tracker = UploadTracker(
      source, progress, ledger, partSize: size, notesCreation: isBelieved && !Self.isTraced(source, info))
    var context = engine.context(tracker)
    if engine.uploader.destination.traits.digests == .trailing { context.isLocal = source.source.isLocal }
    context.source = source
    self.context = context
  }

  var info: BlobInfo { _read { yield source.info } }
  var uploader: Uploader { _read { yield engine.uploader } }
  var uploadProtocol: any UploadProtocol { _read { yield engine.uploader.destination.uploadProtocol } }

  /// The part plan from the server's limits, the body size that gets through, and the capacity of the spool.
  var plan: PartPlan { Self.plan(engine.uploader, source, length, session) }

  /// Length of the source in bytes; nil: its end has not been found yet.
  var length: Int64? { info.length ?? end }

  private static func plan(
    _ uploader: Uploader, _ source: SpooledSource, _ length: Int64?, _ session: UploadSession?
  ) -> PartPlan {
    // Part numbers belong to the plan with which the upload started.
    if let size = session?.partSize { return PartPlan(length: length, partSize: size) }
    var limits = uploader.destination.currentLimits
    if let session { limits.tighten(by: session.limits) }
    var wanted = uploader.partSize ?? (length == nil ? nil : limits.usual)
    if let most = source.largestPart { wanted = min(wanted ?? most, most) }
    return PartPlan(length: length, wanted: wanted, limits: limits)
  }

  func run() async throws(UploadError) -> UploadResult {
    while true {
      do {
        if var result = try await step() {
          try storedCheck.check(result)
          let length = length ?? progress.sent
          result.length = length
          uploader.destination.acquaintance.existing.note(wasThere: result.wasThere)
          // Bytes that the server had before do not count as sent by this run.
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

  /// Sends one request: create, query, send or complete. Returns the result once there is one.
  private func step() async throws(UploadError) -> UploadResult? {
    guard let session else { return try await create() }
    guard let offset else {
      switch try await findInFlight(session) {
      case .none: break
      case .from(let offset): return try await take(.upTo(offset, session))
      case .givenUp: return nil
      }
      let held = try await uploadProtocol.held(by: session, context)
      unknownCreations.noteAnswer()
      if let doubted, try await !stillHas(doubted, held, session) { return nil }
      return try await take(held)
    }
    if let parts { return try await step(parts, session) }
    guard let next = try await next(from: offset) else {
      return try await uploadProtocol.complete(session, [], context)
    }
    try checkPartCount(next)
    let told = try await rememberEnd(session)
    // Only reading can find the end of a source of unknown length. The last part extends to the end of the source: the
    // server stores it completely or not at all, so it cannot wait for acknowledgements that would free space in the
    // spool.
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
      // If the server does not report how much it has stored, it has stored everything that was sent.
      let sent = open.map { $0.reached - offset } ?? attempted
      let held = receipt.held == PartReceipt.all ? sent : receipt.held
      try storedCheck.check(held: offset + held)
      if held == 0, end != offset || open == nil {
        // A server without chunked support treats a chunked body as empty.
        if open != nil, next.length != nil { measures = true }
        throw keepsNothing(of: sent, from: offset)
      }
      let isFair = advance(to: offset + held, session)
      part += 1
      if held < sent, !isFair { throw keepsLittle(held, of: sent, from: offset) }
      return nil
    }
  }

  /// The next part, from `offset` on; nil: nothing is left. If the end of the source is unknown, the source is read
  /// ahead first: the last part tells the server the length, and may be empty.
  func next(from offset: Int64) async throws(UploadError) -> Part? {
    if offset < source.first, await !source.rewind() { throw lost(from: offset) }
    try await source.skip(to: offset, info.validator)
    if let end { return Part(number: part, start: offset, length: max(0, end - offset), isLast: true) }
    let part = parts.map { $0.held.count + 1 } ?? self.part
    guard let next = plan.part(from: offset, number: part), info.length == nil, let length = next.length else {
      return plan.part(from: offset, number: part)
    }
    let wanted = measures && part <= pipe?.parts ?? .max ? length : 1
    let there = try await source.look(from: offset, wanted, info.validator)
    if there > 0 { try pipe?.check(part, endingAt: offset + there) }
    if there == wanted { return isAcknowledgedOnTheWay ? endless(next) : next }
    end = offset + there
    return Part(number: part, start: offset, length: there, isLast: true)
  }

  /// Records the end of a source of unknown length before the server is informed. The server may report the length
  /// later, and only an end that was sent to it is believed.
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
    // A file that fits in one request can also go in parts, which can be sent again.
    if most != .max, let held = source.largestPart { most = min(most, held) }
    // A source that the spool holds completely is sent again from there.
    if let length = info.length, source.holds(length), uploader.destination.traits.numbersParts {
      most = uploader.destination.currentLimits.largest ?? .max
    }
    if createsEmpty && most != .max || takesParts, uploader.destination.traits.resumesCreations { most = 0 }
    if most > 0, pipe == nil, info.length ?? .max <= most {
      let whole = Part(number: 1, start: 0, length: info.length, isLast: true)
      // Only reading can find the end of a source of unknown length.
      if info.length == nil { open = OpenPart(source.source, from: 0, length: nil) }
      let body: any BlobSource = open ?? (info.wantsTrace ? trace(from: 0) : source.source)
      first = FirstPart(whole, BlobSlice(body, length: info.length, validator: info.validator))
    }
    (attempted, attemptedLast) = (first.map { $0.part.length ?? .max } ?? 0, first != nil)
    let held = try await create(with: first)
    if let open { end = open.end }
    let result = try await take(held)
    if result == nil { unknownCreations.noteCreation() }
    // The session must be durable before bytes are sent to it.
    if result == nil { try await ledger?.flush() }
    return result
  }

  private func send(_ part: Part, _ body: BlobSlice, to session: UploadSession) async throws(UploadError) -> Sent {
    tracker.begin(at: part.start)
    defer { noteSent(from: part.start, atMost: attempted) }
    return try await uploadProtocol.send(part, body, to: session, context)
  }

  private func create(with first: FirstPart?) async throws(UploadError) -> Held {
    tracker.begin(at: 0)
    defer { noteSent(from: 0, atMost: attempted) }
    return try await uploadProtocol.create(target, first: first, context)
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

  /// Returns false if the server has more bytes than before, but so few of those it was sent that the failures stay
  /// counted.
  @discardableResult func advance(to offset: Int64, _ session: UploadSession) -> Bool {
    self.session = session
    tracker.session = session
    self.offset = offset
    let isFair = offset <= best || failures.noteKept(offset - best)
    if isFair, offset > best { bounds.noteProgress() }
    best = max(best, offset)
    // Numbered parts may leave gaps before the offset.
    if parts == nil { source.acknowledge(offset) }
    progress.settle(at: offset)
    ledger?.acknowledged(offset)
    return isFair
  }
}
