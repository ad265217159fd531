import BlobHTTP
import Blobs

/// What an upload works with from its start to its end.
struct UploadSetup: Sendable {
  let engine: UploadEngine
  let source: SpooledSource
  let target: UploadTarget
  let ledger: (any UploadLedger)?
  let progress: UploadProgress
  /// How a source of unknown length is sent in numbered parts. No later run can resume such an upload. nil: the length
  /// is known, or the protocol counts offsets.
  let pipe: PipePlan?
  /// Receives the events of the upload's requests.
  let tracker: UploadTracker
  let context: UploadContext

  init(
    _ engine: UploadEngine, _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget,
    _ ledger: (any UploadLedger)?, _ progress: UploadProgress, pipe: PipePlan? = nil
  ) {
    self.engine = engine
    let source = SpooledSource(source, info, engine.uploader.spool)
    self.source = source
    self.target = target
    self.ledger = ledger
    self.progress = progress
    self.pipe = pipe
    let size =
      !engine.uploader.destination.traits.numbersParts
      ? nil : pipe?.partSize ?? engine.uploader.plan(source, length: info.length, nil).partSize
    tracker = UploadTracker(
      source, progress, ledger, partSize: size,
      notesCreation: engine.uploader.destination.traits.resumesCreations && !source.isTraced)
    var context = engine.context(tracker)
    if engine.uploader.destination.traits.digests == .trailing { context.isLocal = source.source.isLocal }
    context.source = source
    context.entry = ledger?.entry
    self.context = context
  }

  var info: BlobInfo { _read { yield source.info } }
  var uploader: Uploader { _read { yield engine.uploader } }
  var uploadProtocol: any UploadProtocol { _read { yield engine.uploader.destination.uploadProtocol } }
}

// Numbered parts. Each part fails, waits and is sent again independently of the others.
extension UploadSetup {
  /// Sends several parts at a time, if the source permits it. If one fails for good, the receipts of those that have
  /// arrived are returned as well.
  func send(
    _ parts: [Part], to session: UploadSession
  ) async -> (arrived: [PartReceipt], failure: UploadError?) {
    let isOneByOne = source.source.access == .sequential || !uploader.destination.limits.isParallel
    let most = isOneByOne ? 1 : uploader.mostReaders(of: info)
    return await uploader.atOnce(parts, atMost: most, bytes: { $0.length ?? 0 }) { part in
      await send(part, to: session)
    }
  }

  private func send(_ part: Part, to session: UploadSession) async -> Result<PartReceipt, UploadError> {
    var failures = FailureCount()
    while true {
      let sent = SentCounter()
      var with = context
      with.events = CountedEvents(context.events, in: sent)
      do throws(UploadError) {
        let receipt = try await receipt(of: part, session, with)
        progress.acknowledge(receipt.held, sent: sent.bytes.load(ordering: .relaxed))
        ledger?.receipt(receipt)
        ledger?.acknowledged(progress.acknowledged)
        // If parts are sent one by one, they arrive in order.
        source.acknowledge(part.start + receipt.held)
        return .success(receipt)
      } catch {
        progress.advance(by: -sent.bytes.load(ordering: .relaxed))
        if error.recovery == .giveUp || error.recovery == .restart { return .failure(error) }
        do throws(UploadError) {
          try await uploader.wait(after: error, &failures, "\(target.path), part \(part.number)")
        } catch {
          return .failure(error)
        }
      }
    }
  }

  private func receipt(
    of part: Part, _ session: UploadSession, _ with: UploadContext
  ) async throws(UploadError) -> PartReceipt {
    if part.start < source.first { throw source.lost(from: part.start) }
    try await source.skip(to: part.start, info.validator)
    let body = BlobSlice(source.source, start: part.start, length: part.length, validator: info.validator)
    switch try await uploadProtocol.send(part, body, to: session, with) {
    case .receipt(let receipt, _):
      if receipt.number == part.number, receipt.held == part.length { return receipt }
      throw UploadError(
        .resync, .destination,
        "\(target.path): of part \(part.number), with \(part.length ?? 0) bytes, the server kept \(receipt.held)")
    case .finished:
      throw UploadError(
        .giveUp, .destination,
        "\(target.path): the server took part \(part.number) for the whole: it cannot be trusted")
    }
  }
}
