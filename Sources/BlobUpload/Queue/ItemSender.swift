import BlobCrypto
import Blobs

/// Sends claimed items, and tells the observer and the journal how each has ended.
final class ItemSender: Sendable {
  private let destination: QueueDestination
  private let observer: any UploadObserver
  private let totals: UploadTotals
  /// As `UploadQueue.digest`.
  private let digest: Digest.Algorithm?
  let claims: ItemClaims
  let names: ItemNames
  let grouped: GroupedUploads
  private let earlier: EarlierVersions
  private let changes: SourceChanges
  let seals: ItemSeals
  let doubtful: DoubtfulUploads
  let proofs: ItemProofs

  init(_ queue: UploadQueue, _ destination: QueueDestination, _ observer: any UploadObserver) {
    (self.destination, self.observer, totals, digest) = (destination, observer, queue.totals, queue.digest)
    claims = ItemClaims(destination: destination, replacesGrown: queue.replacesGrown)
    names = ItemNames(destination, claims, queue.naming)
    grouped = GroupedUploads(destination)
    earlier = EarlierVersions(queue, destination)
    changes = SourceChanges(destination: destination, claims: claims, keepsOpen: queue.keepsOpen)
    seals = ItemSeals(destination: destination)
    doubtful = DoubtfulUploads(destination, claims)
    proofs = ItemProofs(queue, destination)
  }

  /// Returns the error after which no other item can succeed; nil: continue.
  func handle(_ work: ClaimedItem) async -> UploadError? {
    if let id = work.entry, let error = names.groups?.refusal(of: work) {
      return await end(work, id, UploadProgress(), error)
    }
    let work = await names.underGroupNumber(work)
    switch work.claim {
    case .fresh(let id): return await send(work, id)
    case .resume(let entry): return await send(work, entry.id, goingOnWith: entry, after: entry)
    case .unsure(let entry):
      return await send(work, entry.id, goingOnWith: entry, comparing: entry.sent, after: entry)
    case .replaced(let id, let old):
      let isSettled = await destination.leftovers.delete(old)
      let error = await send(work, id, after: old)
      // A server that was busy or unreachable before may be able to delete it now.
      if !isSettled { await destination.leftovers.delete(old) }
      return error
    case .busy(let owner):
      let failure = UploadError(.giveUp, .file, "process \(owner.pid) is sending it just now")
      names.groups?.note(failure, of: work.item)
      grouped.note(failure, of: work.item)
      tell(work, nil, .busy(pid: owner.pid))
      return nil
    case .done(let entry): return await confirm(work, entry)
    }
  }

  /// Tells the observer how an item has ended.
  func tell(_ work: ClaimedItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    guard work.isReported else { return observer.ended(work.item, progress, outcome) }
    switch outcome {
    case .sent, .doneBefore: break
    case .busy, .failed: observer.ended(work.item, nil, outcome)
    }
  }

  /// Checks an item that an earlier run has sent, and sends it again if needed. Returns as `handle` does.
  private func confirm(_ work: ClaimedItem, _ entry: JournalEntry) async -> UploadError? {
    let item = work.item
    let evidence: StoredEvidence
    do {
      guard let found = try await earlier.evidence(of: item, entry) else {
        // Another process may have started to send to the same name since the journal was read.
        let claim = try await claims.claim([item], again: true)[0].claim
        return await handle(ClaimedItem(item, claim, isReported: work.isReported))
      }
      evidence = found
    } catch {
      let failure = judged(error)
      tell(work, nil, .failed(failure))
      return failure.endsQueue ? failure : nil
    }
    if entry.isSuperseded { destination.journal.kept(entry.id) }
    if evidence != .journal { destination.state.noteStored() }
    tell(work, nil, .doneBefore(evidence))
    return nil
  }
}

// Sends one item.
extension ItemSender {
  private func send(
    _ work: ClaimedItem, _ id: Int64, goingOnWith entry: JournalEntry? = nil,
    comparing doubted: [SentRange]? = nil, after before: JournalEntry? = nil
  ) async -> UploadError? {
    if work.item.isSealed, let evidence = await seals.evidenceOfCheck(work, id, goingOnWith: entry) {
      tell(work, work.progress, .doneBefore(evidence))
      return nil
    }
    let isAlone = doubtful.recent.areMixed
    let progress = work.progress ?? UploadProgress(totals: totals)
    if work.progress == nil, !work.isReported { observer.started(work.item, progress) }
    let sent: SentItem
    do throws(UploadError) {
      let source = work.item.source
      var target = work.item.target
      var continuation = Continuation(entry: entry, doubted: doubted)
      if let sealed = work.item.sealed {
        continuation = try await seals.withKey(sealed, work.item, id, continuation)
      }
      if let before, before.mayHaveGrown(to: work.item.info.length),
        try await earlier.isBegunAtServer(work.item, since: before)
      {
        target.overwrite = true
      }
      let algorithm = digest ?? proofs.digest(of: source)
      let hashed = algorithm.map { HashingSource(source, $0) }
      let overwriting = OverwriteGuard(destination: destination)
      var result = try await overwriting.replacingNoneOfThisRun(work.item, target) {
        [target] () async throws(UploadError) in
        try await destination.engine.upload(
          hashed ?? source, work.item.info, to: target, entry: id, sealed: work.item.sealed,
          resuming: continuation.entry?.session,
          receipts: continuation.entry?.receipts ?? [], comparing: continuation.doubted,
          sentAtMost: continuation.entry?.sentLimit, progress: progress)
      }
      result.digest = hashed?.value
      sent = SentItem(work, id, progress, isAlone: isAlone, target, result, algorithm)
    } catch {
      return await fail(work, id, progress, error, isStored: false)
    }
    if grouped.holds(sent) { return nil }
    var ending = await endStored(sent)
    for other in grouped.takePublished(with: sent) {
      let error = await endStored(other)
      ending = ending ?? error
    }
    return ending
  }

  /// Ends an item that the server has under its name.
  private func endStored(_ sent: SentItem) async -> UploadError? {
    proofs.verifies ? await proofs.verify(sent, in: self) : await finish(sent, at: sent.result.location)
  }
}

// Notes how an item has ended. Each function returns the error after which no other item can succeed; nil: continue.
extension ItemSender {
  /// Notes that the item is done. `location`: where the file is, from the server.
  func finish(_ sent: SentItem, at location: String?) async -> UploadError? {
    let item = sent.work.item
    var result = sent.result
    result.location = location
    let outcome = UploadOutcome.sent(result, from: sent.progress.resumed)
    // The journal has the URL of a place in one form.
    let url = sent.target.url
    if !url.isNormal, result.location == url.description { result.location = url.normalized.description }
    var content: SealedContent?
    if let sealed = item.sealed {
      content = await seals.content(of: sealed, result)
      sealed.forgetKey()
    }
    destination.journal.done(
      sent.id, result, keepsChecksums: item.keepsChecksums, replaces: !outcome.foundAll(of: item.info.length),
      sealed: content)
    if names.groups?.isNumbering == true || item.isRenamed { await destination.leftovers.endOtherNumbers(of: item) }
    tell(sent.work, sent.progress, outcome)
    doubtful.recent.add(sent.work, sent.id, result.location, isAlone: sent.isAlone)
    return await doubtful.send(in: self)
  }

  /// Notes that the item has failed, or sends it once more. `isStored`: the server has said that it stored the file.
  func fail(
    _ work: ClaimedItem, _ id: Int64, _ progress: UploadProgress, _ error: UploadError, isStored: Bool
  ) async -> UploadError? {
    let error = await explained(error, of: work.item)
    await seals.noteTaken(work.item, error)
    if let again = await changes.lookAgain(work, id, progress, error) { return await handle(again) }
    if let again = await names.underNextName(work, id, progress, error) { return await handle(again) }
    // A file that cannot be read back was not refused.
    return await end(work, id, progress, isStored ? error : judged(error))
  }

  /// Notes that the item has failed, which is final in this run.
  func end(
    _ work: ClaimedItem, _ id: Int64, _ progress: UploadProgress, _ failure: UploadError
  ) async -> UploadError? {
    if changes.staysOpen(work.item, failure) {
      claims.release([work])
    } else if await !names.isLeftOut(id, failure) {
      destination.journal.failed(id, failure.message)
    }
    names.groups?.note(failure, of: work.item)
    grouped.note(failure, of: work.item)
    tell(work, progress, .failed(failure))
    return failure.endsQueue ? failure : nil
  }

  /// Classifies a failure of one item, which may be a failure of all.
  private func judged(_ error: UploadError) -> UploadError {
    destination.state.judge(oneOfMany: error, holdsBytes: totals.acknowledged > 0)
  }

  /// Returns the error that names the reason of `error`: a file that was deleted, a file in the place of a folder, or the
  /// result of the pending query if that was no, because it concerns all items and is reported once.
  private func explained(_ error: UploadError, of item: UploadItem) async -> UploadError {
    let error = await changes.explained(error, of: item)
    let ofPlace = await destination.state.folderPlace.explained(error, of: item, destination.engine)
    guard ofPlace.side != .cancelled, let question = destination.uploader.destination.question else { return ofPlace }
    do throws(UploadError) { try await question.answered() } catch let refusal { return refusal }
    return ofPlace
  }
}
