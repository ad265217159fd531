import BlobQueue
import BlobUpload
import Blobs
import Synchronization

/// Claims items of one destination of a shared queue, page by page, and waits while there are none, until all is there.
final class QueuePages: EntryPages {
  let journal: Journal
  private let worker: QueueWorker
  /// In the queue, and in the journal of this process.
  private let (destination, local): (Int64, Int64)
  /// Blocks. Whether there may be more to claim.
  private let goesOn: @Sendable () throws(JournalError) -> Bool
  /// The entries of pages that are not sent yet, by source and path.
  private let pending = Mutex<[Key: JournalEntry]>([:])

  private struct Key: Hashable {
    let source: BytePath
    let path: BytePath
  }

  init(
    _ session: QueueSession, _ destination: Int64, local: Int64,
    while goesOn: @escaping @Sendable () throws(JournalError) -> Bool
  ) {
    (worker, journal, self.destination, self.local) = (session.worker, session.journal, destination, local)
    self.goesOn = goesOn
  }

  func next(after last: JournalEntry?) async throws(JournalError) -> [JournalEntry] {
    var wait = Duration.milliseconds(50)
    while !Task.isCancelled {
      if worker.mayClaim {
        let items = try await QueueSession.threads.run { [worker, destination] () throws(JournalError) in
          try worker.claim(at: destination)
        }
        if !items.isEmpty { return try await adopt(items) }
        if try await !QueueSession.threads.run(goesOn) { return [] }
        wait = min(wait * 2, .seconds(1))
      }
      // A task that is cancelled returns above.
      try? await Task.sleep(for: wait)
    }
    return []
  }

  private func adopt(_ items: [ClaimedItem]) async throws(JournalError) -> [JournalEntry] {
    let ended = worker.takeEnded()
    if !ended.isEmpty { try await journal.remove(ended) }
    let entries = try await journal.adopt(items.map { ($0.upload, $0.parts, local) })
    worker.hold(zip(entries, items).map { (entry: $0.id, item: $1) })
    pending.withLock { pending in
      for entry in entries { pending[Key(source: entry.intent.source, path: entry.intent.path)] = entry }
    }
    return entries
  }

  func mayBe(_ stamp: FileStamp, of entry: JournalEntry) -> Bool {
    // Where the file was not added, another one may have its path.
    !worker.isFromElsewhere(entry.id) || stamp.validator.version == entry.intent.validator?.version
  }

  func giveBack(_ entry: JournalEntry, _ message: String) async throws(JournalError) -> Bool {
    pending.withLock { _ = $0.removeValue(forKey: Key(source: entry.intent.source, path: entry.intent.path)) }
    return try await QueueSession.threads.run { [worker] () throws(JournalError) in
      try worker.giveUp(entry.id, message)
    }
  }

  /// Returns the items that are those of entries. The entries of the other sources in `found` have failed.
  func settle(_ found: [FoundSource], _ items: [UploadItem], _ report: any PushReport, _ counters: PushCounters)
    async throws(JournalError) -> [UploadItem]
  {
    var left = pending.withLock { pending in
      found.compactMap { source -> (Key, JournalEntry)? in
        let key = Key(source: source.identity, path: source.name.path)
        return pending.removeValue(forKey: key).map { (key, $0) }
      }
    }
    var sent: [UploadItem] = []
    for item in items {
      let key = Key(source: item.identity, path: item.target.plainPath)
      guard let place = left.firstIndex(where: { $0.0 == key && $0.1.intent.key == item.intent().key }) else {
        counters.failed(length: item.info.length)
        report.failed(
          item.identity, "it was pushed as another user, or to a URL with another query: give the same here")
        continue
      }
      left.remove(at: place)
      sent.append(item)
    }
    for (_, entry) in left {
      try await QueueSession.threads.run { [worker] () throws(JournalError) in
        try worker.fail(entry.id, "it could not be read, or was pushed as another user or with another query")
      }
    }
    return sent
  }
}

extension PushRun {
  /// Sends what `pages` claim, until that is all. Returns as `run` does.
  func run(claiming pages: QueuePages, _ feed: PushFeed, _ opener: SourceOpener) async -> UploadError? {
    let walk = ResumeWalk(pages, report, counters)
    return await run { () async throws(UploadError) in
      while let found = await walk.next() {
        let items = await feed.items(await opener.open(found))
        if Task.isCancelled { return nil }
        do throws(JournalError) {
          let items = try await pages.settle(found, items, report, counters)
          if !items.isEmpty { return items }
        } catch {
          throw UploadError(journal: error)
        }
      }
      if let failure = await walk.failure { throw UploadError(journal: failure) }
      return nil
    }
  }
}
