import BlobCrypto
import Blobs

// Sends one item, and notes how that has ended.
extension UploadQueue {
  func send(
    _ work: Claimed, _ id: Int64, goingOnWith entry: JournalEntry? = nil,
    comparing doubted: [SentRange]? = nil, after before: JournalEntry? = nil, _ engine: UploadEngine,
    _ observer: some UploadObserver
  ) async -> UploadError? {
    if work.item.isSealed, await endChecked(work, id, goingOnWith: entry, observer) { return nil }
    let isAlone = recent.areMixed
    let progress = work.progress ?? UploadProgress(totals: totals)
    if work.progress == nil { observer.started(work.item, progress) }
    let sent: SentItem
    do throws(UploadError) {
      let source = work.item.source
      var target = work.item.target
      var earlier = Continuation(entry: entry, doubted: doubted)
      if let sealed = work.item.sealed { earlier = try await withKey(sealed, work.item, id, earlier, engine) }
      if let before, before.mayHaveGrown(to: work.item.info.length),
        try await isBegunAtServer(work.item, since: before)
      {
        target.overwrite = true
      }
      let algorithm = digest ?? (verify ? digestForVerifying(source) : nil)
      let hashed = algorithm.map { HashingSource(source, $0) }
      var result = try await replacingNoneOfThisRun(work.item, target) { [target] () async throws(UploadError) in
        try await engine.upload(
          hashed ?? source, work.item.info, to: target, entry: id, sealed: work.item.sealed,
          resuming: earlier.entry?.session,
          receipts: earlier.entry?.receipts ?? [], comparing: earlier.doubted, sentAtMost: earlier.entry?.sentLimit,
          progress: progress)
      }
      result.digest = hashed?.value
      sent = SentItem(work, id, progress, isAlone: isAlone, observer, target, result, algorithm)
    } catch {
      return await fail(work, id, progress, error, isStored: false, engine, observer)
    }
    if grouped.holds(sent) { return nil }
    var ending = await endStored(sent, engine)
    for other in grouped.takePublished(with: sent) {
      let error = await endStored(other, engine)
      ending = ending ?? error
    }
    return ending
  }

  /// Ends an item that the server has under its name.
  private func endStored(_ sent: SentItem, _ engine: UploadEngine) async -> UploadError? {
    verify ? await verify(sent, engine) : await finish(sent, at: sent.result.location, engine)
  }

  /// Notes that the item is done. `location`: where the file is, from the server.
  func finish(_ sent: SentItem, at location: String?, _ engine: UploadEngine) async -> UploadError? {
    var result = sent.result
    result.location = location
    let outcome = UploadOutcome.sent(result, from: sent.progress.resumed)
    // The journal has the URL of a place in one form.
    let url = sent.target.url
    if !url.isNormal, result.location == url.description { result.location = url.normalized.description }
    var content: SealedContent?
    if let sealed = sent.work.item.sealed {
      content = await self.content(of: sealed, result)
      sealed.forgetKey()
    }
    journal.done(
      sent.id, result, keepsChecksums: sent.work.item.keepsChecksums,
      replaces: !outcome.foundAll(of: sent.work.item.info.length), sealed: content)
    if groups?.isNumbering == true || sent.work.item.isRenamed { await endOtherNumbers(of: sent.work.item) }
    sent.observer.ended(sent.work.item, sent.progress, outcome)
    recent.add(sent.work, sent.id, result.location, isAlone: sent.isAlone)
    return await sendDoubtful(engine, sent.observer)
  }

  /// Notes that the item has failed, or sends it once more. `isStored`: the server has said that it stored the file.
  func fail(
    _ work: Claimed, _ id: Int64, _ progress: UploadProgress, _ error: UploadError, isStored: Bool,
    _ engine: UploadEngine, _ observer: some UploadObserver
  ) async -> UploadError? {
    let error = await explained(await explainedByPlace(await explainedBySource(error, of: work.item), of: work.item))
    await noteTaken(work.item, error)
    if let again = await lookAgain(work, id, progress, error) { return await handle(again, engine, observer) }
    if let again = await underNextName(work, id, progress, error) { return await handle(again, engine, observer) }
    // A file that cannot be read back was not refused.
    return await end(work, id, progress, isStored ? error : judged(error), observer)
  }

  /// Notes that the item has failed, which is final in this run. Returns the error after which no other item can succeed;
  /// nil: continue.
  func end(
    _ work: Claimed, _ id: Int64, _ progress: UploadProgress, _ failure: UploadError, _ observer: some UploadObserver
  ) async -> UploadError? {
    if staysOpen(work.item, failure) {
      release([work])
    } else if await !isLeftOut(id, failure) {
      journal.failed(id, failure.message)
    }
    groups?.note(failure, of: work.item)
    grouped.note(failure, of: work.item)
    observer.ended(work.item, progress, .failed(failure))
    return failure.endsQueue ? failure : nil
  }
}
