import BlobCrypto
import BlobHTTP
import Blobs

/// Sends many items, several at a time; each is claimed in the journal before its first byte is sent.
public struct UploadQueue: Sendable {
  /// Sends each item.
  public var uploader: Uploader
  /// The journal in which items are claimed.
  public var journal: Journal
  /// The ID of the destination in the journal.
  public var destinationID: Int64
  /// Maximum number of items that are sent at the same time. Small items mostly wait for the network, so the number is
  /// large.
  public var jobs = 64
  /// Maximum number of items over `largeFrom` bytes among these: a few fill most links, and an interruption leaves
  /// fewer of them unfinished. More are sent if the transport finds that they increase the throughput.
  public var largeJobs = 8
  /// Items of more bytes than this are limited by `largeJobs`.
  public var largeFrom: Int64 = 4 << 20
  /// Asks the server about items that were finished before, and sends again those that it lost.
  public var check = false
  /// Reads every upload back and compares it before it counts as finished.
  public var verify = false
  /// Makes this digest of each item while its bytes are read to be sent. With `verify`, what is read back is compared by it,
  /// so that the source is read once. nil: a digest is made only of what cannot be read again.
  package var digest: Digest.Algorithm?
  /// A file that has only grown since this journal sent it may replace the version that was sent, if the server still
  /// has that.
  public var replacesGrown = false
  /// What becomes of items whose names have other bytes at the destination.
  package var conflicts = Conflicts.fail
  /// Sends the files of one photo in an order, with the same number; nil: each goes by itself.
  package var groups: GroupNumbers?
  /// The groups that the server publishes together.
  let grouped = GroupedUploads()
  /// An item is as after an interruption if the server has refused the credentials, or if its source has changed: the
  /// caller, or the next run, goes on with it.
  package var keepsOpen = false
  /// Totals over all items of the queue. It may be shared with other queues.
  public var totals = UploadTotals()
  /// If set, the queue waits for items that another process is sending, until they are stored or that process gives
  /// them up. Called once for each such process. Not for a feed without an end. nil: these items end as `.busy`.
  public var waiting: (@Sendable (_ pid: Int32) -> Void)?
  /// Sleeps between two looks at items that another process is sending.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// The last uploads of the current run.
  private(set) var recent: RecentUploads
  /// Files of the current run that `verify` has not compared yet.
  private(set) var unproved: SentItems

  /// Creates a queue. `destinationID` is what `Journal.destinationID` returned.
  public init(_ uploader: Uploader, journal: Journal, destinationID: Int64) {
    self.uploader = uploader
    recent = RecentUploads(uploader)
    unproved = SentItems(uploader.clock, senders: 0)
    self.journal = journal
    self.destinationID = destinationID
  }

  /// Sends the items of `feed`, batch by batch, until it returns nil; batches of about 128 keep the journal fast.
  ///
  /// A failed item is reported to the observer, and the others continue. Throws if no other item can succeed: the
  /// destination cannot be reached or refuses all uploads, the journal cannot be written, or the task was cancelled.
  public func run(
    _ feed: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?, _ observer: some UploadObserver
  ) async throws(UploadError) {
    var queue = self
    queue.recent = RecentUploads(uploader)
    queue.unproved = SentItems(uploader.clock, senders: max(1, jobs))
    try await queue.send(feed, observer)
  }

  private func send(
    _ feed: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?, _ observer: some UploadObserver
  ) async throws(UploadError) {
    try await recall()
    let channel = BatchChannel<Claimed>(ahead: 2)
    let engine = UploadEngine(uploader)
    let fatal = FirstError()
    let stop: @Sendable (UploadError) -> Void = { error in
      fatal.keep(error)
      release(channel.drop() + (groups?.drop() ?? []))
    }
    let large = Gate(largeJobs)
    // A few extra items wait, so that the transport can detect whether more concurrency would help.
    (uploader.transport as? any AdaptiveTransport)?.follow { [largeJobs] in large.widen(to: max(largeJobs, $0 + 4)) }
    await withTaskGroup(of: Void.self) { group in
      if let question = uploader.destination.question {
        question.open()
        // With one connection, the query cannot run beside the first item.
        if jobs == 1 { await question.ask(stop) } else { group.addTask { await question.ask(stop) } }
      }
      group.addTask {
        func hand(on works: [Claimed]) async throws(UploadError) {
          if works.isEmpty { return }
          do { try await makeSeals(works) } catch {
            release(works)
            throw error
          }
          let works = smallFirst(inGroups(works))
          groups?.begin(works)
          if await !channel.send(works) { release(works) }
        }
        func goesOn() -> Bool { fatal.error == nil && !Task.isCancelled }
        var others = OthersItems(self)
        do throws(UploadError) {
          let knowsNumbers = try await knowsNumbers()
          while let items = try await feed(), goesOn() {
            try await hand(on: others.setAside(try await claimFound(items, knowsNumbers: knowsNumbers)))
            while others.areMany, goesOn() { try await hand(on: try await others.freed()) }
          }
          while !others.isEmpty, goesOn() { try await hand(on: try await others.freed()) }
          if let groups { try await hand(on: groups.takeUnseen()) }
          channel.finish()
        } catch {
          stop(error)
        }
      }
      // Results of worker threads are processed on one thread: waking another thread costs more than the work itself.
      let executor = ThreadExecutor("fullbore-queue")
      for _ in 0..<max(1, jobs) {
        group.addTask(executorPreference: executor) {
          while let work = await channel.next() {
            var next = [work][...]
            while let work = next.popFirst() {
              if groups?.keepsWaiting(work) == true { continue }
              let error =
                isLarge(work)
                ? await large.pass { await handle(work, engine, observer) } : await handle(work, engine, observer)
              if let error { stop(error) }
              if let error = await prove(unproved.takeBatch(), engine) { stop(error) }
              if work.item.group == nil, work.item.target.group == nil { continue }
              let members = (groups?.end(work) ?? []) + (await grouped.end(work, in: self))
              if fatal.error == nil { next += members } else { release(members) }
            }
          }
          if let error = await proveRest(engine, isStopped: fatal.error != nil) { stop(error) }
          unproved.endSender()
        }
      }
      if verify {
        group.addTask {
          await unproved.eachMoment {
            if let error = await prove(unproved.takeAll(), engine) { stop(error) }
          }
        }
      }
      // Tasks that wait at the gate do not notice a fatal error elsewhere, so they are cancelled here.
      for await _ in group where fatal.error != nil { group.cancelAll() }
      withExtendedLifetime(executor) {}
    }
    release(groups?.drop() ?? [])
    grouped.drop(in: self)
    if fatal.error == nil, !Task.isCancelled { await deleteLeftovers() }
    try await flush()
    // A second response to the last request on a connection has had some time to arrive.
    await recent.checkConnections()
    if fatal.error != nil || Task.isCancelled {
      leaveDoubtful()
    } else if let error = await sendDoubtful(engine, observer) {
      stop(error)
    }
    if let error = await proveRest(engine, isStopped: fatal.error != nil) { stop(error) }
    try await flush()
    // Losing this value is harmless: the next run measures again.
    try? await remember()
    if let error = fatal.error { throw error }
    if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
    if let error = uploader.destination.acquaintance.refusalOfAll { throw error }
  }

  func isLarge(_ work: Claimed) -> Bool { work.item.info.length ?? .max > largeFrom }

  /// Moves small items to the front. Otherwise many small ones, which mostly wait for responses, could queue behind a
  /// few that fill the link.
  private func smallFirst(_ works: [Claimed]) -> [Claimed] {
    works.filter { !isLarge($0) } + works.filter(isLarge)
  }

  /// `insteadOf`: the entry that the first item replaces, as in `Journal.claim`.
  func claim(
    _ items: [UploadItem], again: Bool = false, insteadOf old: Int64? = nil
  ) async throws(UploadError) -> [Claimed] {
    let intents = items.map { item in
      var intent = item.intent(partSize: uploader.partSize)
      if item.isRenamed { intent.unnumberedKey = item.under(1, uploader.destination)?.intent().key }
      return intent
    }
    do {
      let claims = try await journal.claim(
        intents, destination: destinationID, again: again, replacesGrown: replacesGrown, insteadOf: old)
      let works = zip(items, claims).map { Claimed($0, $1) }
      noteStored(works)
      return works
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Releases claimed items, so that other processes need not wait for this process to end.
  func release(_ works: [Claimed]) {
    for work in works {
      switch work.claim {
      case .fresh(let id), .replaced(let id, _): journal.released(id)
      case .resume(let entry), .unsure(let entry), .done(let entry): journal.released(entry.id)
      case .busy: break
      }
    }
  }

  func flush() async throws(UploadError) {
    do { try await journal.flush() } catch { throw UploadError(journal: error) }
  }

  /// Returns the error after which no other item can succeed; nil: continue.
  func handle(
    _ work: Claimed, _ engine: UploadEngine, _ observer: some UploadObserver
  ) async -> UploadError? {
    if let id = work.entry, let error = groups?.refusal(of: work) {
      return await end(work, id, UploadProgress(), error, observer)
    }
    let work = await underGroupNumber(work)
    switch work.claim {
    case .fresh(let id): return await send(work, id, engine, observer)
    case .resume(let entry):
      return await send(work, entry.id, goingOnWith: entry, after: entry, engine, observer)
    case .unsure(let entry):
      return await send(
        work, entry.id, goingOnWith: entry, comparing: entry.sent, after: entry, engine, observer
      )
    case .replaced(let id, let old):
      let isSettled = await deleteLeftover(old)
      let error = await send(work, id, after: old, engine, observer)
      // A server that was busy or unreachable before may be able to delete it now.
      if !isSettled { await deleteLeftover(old) }
      return error
    case .busy(let owner):
      observer.ended(work.item, nil, .busy(pid: owner.pid))
      return nil
    case .done(let entry): return await confirm(work, entry, engine, observer)
    }
  }
}

extension UploadQueue {
  /// Classifies a failure of one item, which may be a failure of all.
  func judged(_ error: UploadError) -> UploadError {
    uploader.destination.acquaintance.judge(oneOfMany: error, holdsBytes: totals.acknowledged > 0)
  }

  /// Returns the result of the pending query if it was no, because it concerns all items and is reported once;
  /// otherwise `error`.
  func explained(_ error: UploadError) async -> UploadError {
    guard error.side != .cancelled, let question = uploader.destination.question else { return error }
    do throws(UploadError) { try await question.answered() } catch let refusal { return refusal }
    return error
  }
}
