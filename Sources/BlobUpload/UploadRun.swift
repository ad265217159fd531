import BlobCrypto
import BlobHTTP
import Blobs

/// One running upload: the loop that queries the server, sends, and recovers from errors. Used by one task only.
final class UploadRun {
  let setup: UploadSetup
  /// What is to be resumed; nil: nothing, or the server has reported how much it has of it.
  var earlier: EarlierUpload?
  var session: UploadSession?
  var transfer = TransferState()
  var planning: PartPlanning
  var recovery = RecoveryState()
  private var replacement = Replacement()
  /// The source wrapped for this session so that checksums of the sent bytes are recorded in the journal; nil: not
  /// wrapped.
  var traced: (any BlobSource)?

  init(
    _ engine: UploadEngine, _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget,
    _ ledger: (any UploadLedger)?, resuming earlier: EarlierUpload = EarlierUpload(), pipe: PipePlan? = nil,
    _ progress: UploadProgress
  ) {
    setup = UploadSetup(engine, source, info, target, ledger, progress, pipe: pipe)
    planning = PartPlanning(
      measures: engine.uploader.destination.traits.needsBodyLengths || engine.uploader.destination.digestsAhead
        || pipe != nil)
    guard let session = earlier.session else { return }
    self.earlier = earlier
    self.session = session
    if engine.uploader.destination.traits.publishesGroups { self.session?.group = target.group }
    // If the upload can be resumed after its creation, the offset that the server reports is checked against the bytes
    // that earlier runs may have sent.
    transfer.sentEnd = engine.uploader.destination.traits.resumesCreations ? earlier.sentLimit : nil
    transfer.mayBeReceiving = true
    // Without a version, the source cannot be known to end at the same offset.
    if info.length == nil, info.validator != nil { planning.end = session.sourceEnd }
  }

  var engine: UploadEngine { _read { yield setup.engine } }
  var source: SpooledSource { _read { yield setup.source } }
  var target: UploadTarget { _read { yield setup.target } }
  var ledger: (any UploadLedger)? { _read { yield setup.ledger } }
  var progress: UploadProgress { _read { yield setup.progress } }
  var tracker: UploadTracker { _read { yield setup.tracker } }
  var context: UploadContext { _read { yield setup.context } }
  var info: BlobInfo { _read { yield setup.source.info } }
  var uploader: Uploader { _read { yield setup.engine.uploader } }
  var uploadProtocol: any UploadProtocol { _read { yield setup.engine.uploader.destination.uploadProtocol } }

  /// Length of the source in bytes; nil: its end has not been found yet.
  var length: Int64? { info.length ?? planning.end }
  var plan: PartPlan { uploader.plan(source, length: length, session) }
  /// Checks what the server reports about this upload.
  var storedCheck: StoredCheck {
    StoredCheck(target: target, length: length, sent: planning.numbered.map(\.bytes) ?? transfer.sentEnd)
  }

  func run() async throws(UploadError) -> UploadResult {
    while true {
      do {
        if let result = try await step() { return try finished(result) }
      } catch {
        recovery.interruption = error
        do throws(UploadError) {
          let isCreated = (tracker.session ?? session) != nil && uploadProtocol is any ReplacingProtocol
          guard try replacement.isOutdated(error, isCreated: isCreated, target, context) else {
            try await recover(from: error)
            continue
          }
          if let result = try await storedBefore() { return try finished(result) }
          try await createAgain()
        } catch {
          await giveUp(after: error)
          throw error
        }
      }
    }
  }

  private func finished(_ found: UploadResult) throws(UploadError) -> UploadResult {
    var result = found
    try storedCheck.check(result)
    tracker.endReplacement()
    if let leftover = result.leftover {
      ledger?.opened(leftover)
      ledger?.abandoned()
    }
    let length = length ?? result.length ?? progress.sent
    result.length = length
    uploader.destination.acquaintance.existing.note(wasThere: result.wasThere)
    // Bytes that the server had before do not count as sent by this run.
    if progress.hasSent, !result.wasThere { progress.settle(at: length) } else { progress.resume(at: length) }
    return result
  }

  /// Sends one request: create, query, send or complete. Returns the result once there is one.
  private func step() async throws(UploadError) -> UploadResult? {
    guard let session else { return try await create() }
    guard let offset = transfer.offset else { return try await query(session) }
    if planning.numbered != nil { return try await stepParts(of: session, from: offset) }
    guard let next = try await next(from: offset) else {
      return try await uploadProtocol.complete(session, [], context)
    }
    try uploader.destination.limits(of: session).checkCount(next, of: info.length)
    let updated = try await rememberEnd(session)
    // Only reading can find the end of a source of unknown length. The last part extends to the end of the source: the
    // server stores it completely or not at all, so it cannot wait for acknowledgements that would free space in the
    // spool.
    let open =
      length == nil && !(planning.measures && next.length != nil)
      ? OpenPart(
        source.source, from: offset, length: next.length,
        room: { [source] in next.isLast ? .max : source.room(at: $0) }) : nil
    if open != nil { tracker.noteSending(from: offset) }
    let body = BlobSlice(
      open ?? trace(from: offset), start: offset, length: open == nil ? next.length : nil, validator: info.validator)
    transfer.begin(next)
    let answer = try await send(next, body, to: updated)
    recovery.unknownCreations.noteAnswer()
    await rememberOverride()
    if let open, let end = open.end { planning.end = end }
    switch answer {
    case .finished(let result): return result
    case .receipt(let receipt, let session):
      // If the server does not report how much it has stored, it has stored everything that was sent.
      let sent = open.map { $0.reached - offset } ?? transfer.attempted
      let held = receipt.held == PartReceipt.all ? sent : receipt.held
      try storedCheck.check(held: offset + held)
      if held == 0, planning.end != offset || open == nil {
        // A server without chunked support treats a chunked body as empty.
        if open != nil, next.length != nil { planning.measures = true }
        throw storedCheck.keepsNothing(of: sent, from: offset)
      }
      let isFair = advance(to: offset + held, session)
      planning.number += 1
      if held < sent, !isFair { throw storedCheck.keepsLittle(held, of: sent, from: offset) }
      return nil
    }
  }

  /// The next part, from `offset` on; nil: nothing is left. If the end of the source is unknown, the source is read
  /// ahead first: the last part tells the server the length, and may be empty.
  func next(from offset: Int64) async throws(UploadError) -> Part? {
    if offset < source.first, await !source.rewind() { throw lost(from: offset) }
    try await source.skip(to: offset, info.validator)
    let number = planning.next
    if let end = planning.end { return Part(number: number, start: offset, length: max(0, end - offset), isLast: true) }
    guard var next = plan.part(from: offset, number: number), info.length == nil, let length = next.length else {
      return plan.part(from: offset, number: number)
    }
    let wanted = planning.measures && number <= setup.pipe?.parts ?? .max ? length : 1
    let there = try await source.look(from: offset, wanted, info.validator)
    if there > 0 { try setup.pipe?.check(number, endingAt: offset + there) }
    if there < wanted {
      planning.end = offset + there
      return Part(number: number, start: offset, length: there, isLast: true)
    }
    // If the server acknowledges bytes while the body arrives, this frees space in the spool, and the part extends up to
    // the limits of the server and the user. Otherwise it ends when the spool is full.
    let limits = uploader.destination.limits(of: session)
    if uploader.destination.traits.acknowledgesOnTheWay, !planning.measures,
      limits.smallest <= source.largestPart ?? .max
    {
      next.length = [limits.largest, uploader.partSize].compactMap { $0 }.min()
    }
    return next
  }

  /// Records the end of a source of unknown length before the server is informed. The server may report the length
  /// later, and only an end that was sent to it is believed.
  private func rememberEnd(_ session: UploadSession) async throws(UploadError) -> UploadSession {
    guard info.length == nil, let end = planning.end, session.sourceEnd != end else { return session }
    var session = session
    session.sourceEnd = end
    self.session = session
    context.opened(session)
    try await ledger?.flush()
    return session
  }

  private func create() async throws(UploadError) -> UploadResult? {
    let limits = setup.engine.uploader.destination.currentLimits
    var first: FirstPart?
    var open: OpenPart?
    var most = limits.firstPart
    // A file that fits in one request can also go in parts, which can be sent again.
    if most != .max, let held = source.largestPart { most = min(most, held) }
    // A source that the spool holds completely is sent again from there.
    if let length = info.length, source.holds(length), uploader.destination.traits.numbersParts {
      most = limits.largest ?? .max
    }
    if recovery.createsEmpty && most != .max || recovery.takesParts, uploader.destination.traits.resumesCreations {
      most = 0
    }
    if most > 0, setup.pipe == nil, info.length ?? .max <= most {
      let whole = Part(number: 1, start: 0, length: info.length, isLast: true)
      // Only reading can find the end of a source of unknown length.
      if info.length == nil { open = OpenPart(source.source, from: 0, length: nil) }
      let body: any BlobSource = open ?? (info.wantsTrace ? trace(from: 0) : source.source)
      first = FirstPart(whole, BlobSlice(body, length: info.length, validator: info.validator))
    }
    var target = target
    // Numbered parts replace nothing before they are put together.
    if target.overwrite, first != nil || !uploader.destination.traits.numbersParts {
      var asking = replacement
      defer { replacement = asking }
      target.replaced = try await asking.file(at: target, uploadProtocol, context)
    }
    transfer.begin(first?.part)
    let held = try await create(target, with: first)
    if let open { planning.end = open.end }
    if let result = try await take(held) { return result }
    recovery.unknownCreations.noteCreation()
    // The session must be durable before bytes are sent to it.
    try await ledger?.flush()
    return nil
  }

  private func send(_ part: Part, _ body: BlobSlice, to session: UploadSession) async throws(UploadError) -> Sent {
    tracker.begin(at: part.start)
    defer { noteSent(from: part.start) }
    return try await uploadProtocol.send(part, body, to: session, context)
  }

  private func create(_ target: UploadTarget, with first: FirstPart?) async throws(UploadError) -> Held {
    tracker.begin(at: 0)
    defer { noteSent(from: 0) }
    return try await uploadProtocol.create(target, first: first, context)
  }

  private func noteSent(from offset: Int64) {
    let sent = max(tracker.handed, 0)
    recovery.failures.noteSent(sent)
    transfer.noteSent(sent, from: offset)
  }

  func take(_ held: Held) async throws(UploadError) -> UploadResult? {
    switch held {
    case .finished(let result):
      if earlier != nil { progress.resume(at: info.length ?? 0) }
      return result
    case .upTo(let offset, let session):
      try storedCheck.check(held: offset)
      transfer.sentEnd = transfer.sentEnd ?? offset
      if earlier != nil { progress.resume(at: offset) }
      earlier = nil
      advance(to: offset, session)
    case .parts(let theirs, let session):
      try await take(theirs, session)
    }
    return nil
  }

  /// Returns false if the server has more bytes than before, but so few of those it was sent that the failures stay
  /// counted.
  @discardableResult func advance(to offset: Int64, _ session: UploadSession) -> Bool {
    self.session = session
    tracker.session = session
    transfer.offset = offset
    let isFair = offset <= transfer.best || recovery.noteKept(offset - transfer.best)
    transfer.best = max(transfer.best, offset)
    // Numbered parts may leave gaps before the offset.
    if planning.numbered == nil { source.acknowledge(offset) }
    progress.settle(at: offset)
    ledger?.acknowledged(offset)
    return isFair
  }

  /// The source wrapped so that the offset of the sent bytes is recorded in the journal. Checksums are recorded too if
  /// the next run may find the same version with other metadata.
  func trace(from offset: Int64) -> any BlobSource {
    guard let ledger else { return source.source }
    guard source.isTraced else {
      tracker.noteSending(from: offset)
      return source.source
    }
    if let traced { return traced }
    let key = KeyedChecksum.newKey()
    guard let record = ledger.sending(from: offset, key: key) else { return source.source }
    let traced = ChecksummedSource(source.source, from: offset, key: key, record)
    self.traced = traced
    return traced
  }
}
