import Blobs

/// Sends a source of unknown length in numbered parts, one after the other: each part is read into the spool and stays
/// there until it has arrived. An upload that fails is deleted on the server, because it cannot be resumed.
struct PipeRun {
  private let engine: UploadEngine
  private let source: SpooledSource
  private let info: BlobInfo
  private let target: UploadTarget
  private let ledger: (any UploadLedger)?
  private let progress: UploadProgress
  private let plan: PipePlan
  private let context: UploadContext
  private var receipts: [PartReceipt] = []
  /// All bytes before this offset have arrived.
  private var offset: Int64 = 0
  /// All parts were sent, and only the completion is left.
  private var isSent = false

  /// `source` must hold the first part.
  init(
    _ engine: UploadEngine, _ source: SpooledSource, _ info: BlobInfo, _ target: UploadTarget,
    _ ledger: (any UploadLedger)?,
    _ progress: UploadProgress, _ plan: PipePlan
  ) {
    self.engine = engine
    self.source = source
    self.info = info
    self.target = target
    self.ledger = ledger
    self.progress = progress
    self.plan = plan
    var context = engine.context(
      UploadTracker(source, progress, ledger, partSize: plan.partSize, notesCreation: false))
    context.isLocal = source.source.isLocal
    context.source = source
    self.context = context
  }

  private var uploader: Uploader { _read { yield engine.uploader } }
  private var uploadProtocol: any UploadProtocol { uploader.destination.uploadProtocol }

  mutating func run() async throws(UploadError) -> UploadResult {
    var failures = FailureCount()
    var bounds = RecoveryBounds()
    while true {
      let created = try await uploader.patiently("\(target.path)") {
        [uploadProtocol, target, context] () async throws(UploadError) in
        try await uploadProtocol.create(target, first: nil, context)
      }
      guard case .parts(_, var session) = created else {
        if case .finished(let result) = created {
          try StoredCheck(target: target, length: nil, sent: 0).check(result)
          return result
        }
        throw UploadError(.giveUp, .destination, "\(target.url): the server does not count parts")
      }
      session.partSize = plan.partSize
      // The session must be stored durably before anything is sent.
      try await ledger?.flush()
      do throws(UploadError) {
        return try await finish(session)
      } catch {
        await giveUp(session, error)
        // The upload can start again while the source holds all bytes.
        guard error.recovery == .restart, source.first == 0 else { throw final(error) }
        guard bounds.allowsRestart(hasSent: progress.hasSent, kept: offset) else { throw error.afterTooManyRestarts }
        progress.restart()
        try await uploader.wait(after: error, &failures, "\(target.path)")
      }
    }
  }

  private mutating func finish(_ session: UploadSession) async throws(UploadError) -> UploadResult {
    while let part = try await next() {
      let sender = PartSender(
        engine: engine, source: source, validator: info.validator, session: session, context: context,
        progress: progress, name: target.path, ledger: ledger)
      let (sent, failure) = await sender.send([part])
      if let failure { throw failure }
      receipts += sent
      offset += part.length ?? 0
      if part.isLast { break }
    }
    isSent = true
    var result = try await uploader.patiently("\(target.path)") {
      [uploadProtocol, receipts, context] () async throws(UploadError) in
      try await uploadProtocol.complete(session, receipts, context)
    }
    try StoredCheck(target: target, length: offset, sent: receipts.reduce(0) { $0 + $1.held }).check(result)
    progress.settle(at: offset)
    result.length = offset
    return result
  }

  /// The next part, which is then completely in the spool; nil: nothing is left.
  private func next() async throws(UploadError) -> Part? {
    let number = receipts.count + 1
    let isOver = number > plan.parts ?? .max
    let there = try await source.look(from: offset, isOver ? 1 : plan.partSize, info.validator)
    if there == 0 { return nil }
    if isOver || offset + there > plan.most ?? .max {
      throw UploadError(
        .giveUp, .file,
        "there is more of it than \(plan.most ?? offset) bytes, which is what the server takes in "
          + "\(plan.parts.map { "\($0) " } ?? "")parts of \(plan.partSize): --spool-memory makes them larger, or "
          + "--spool-dir, where they are held on disk")
    }
    return Part(number: number, start: offset, length: there, isLast: there < plan.partSize)
  }

  /// Deletes what has arrived. If that fails, the session stays in the journal for `abort`.
  private func giveUp(_ session: UploadSession, _ error: UploadError) async {
    // Without an error response the object may be complete by now: the session, which can identify it, stays for the
    // next run.
    if isSent, ledger != nil, error.recovery != .restart, !(400..<500 ~= error.status ?? 0) { return }
    var uploader = uploader
    uploader.retry.retries = min(uploader.retry.retries, 2)
    do throws(UploadError) {
      try await uploader.patiently("\(target.path)") { [uploadProtocol, context] () async throws(UploadError) in
        try await uploadProtocol.abort(session, context)
      }
    } catch {
      return
    }
    ledger?.restarted()
  }

  private func final(_ error: UploadError) -> UploadError {
    var error = error
    if error.recovery == .restart { error.message += "; it cannot begin anew, since the source is read once" }
    error.recovery = .giveUp
    return error
  }
}
