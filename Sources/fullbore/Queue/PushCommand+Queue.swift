import BlobClient
import BlobQueue
import BlobUpload
import Blobs
import Synchronization

// A push into a queue that several machines share: this process lists the files, and sends what is in the queue for the
// destination, beside the others.
extension PushCommand {
  func run(sharing url: String) async -> ExitStatus {
    let began = ContinuousClock.now
    let counters = PushCounters()
    let report = pushReport(options.output, counters)
    for notice in options.notices { report.notice(notice) }
    let error = await interruptible { await push(url, report, counters) }
    if let error { report.tell(error) }
    let status = ExitStatus(error, counters)
    report.summary(counters.summary(elapsed: began.duration(to: .now), exit: status, ended: error))
    return status
  }

  private func push(_ url: String, _ report: any PushReport, _ counters: PushCounters) async -> UploadError? {
    do throws(UploadError) {
      let queue = try await SharedQueue.open(url, report)
      let transport = SocketTransport(
        try options.connection.transportOptions(at: options.pace, sharing: options.limiter))
      let waits = SourceWaits()
      let outage = OutageMonitor(options.destination.endpoint, report, counters, sources: waits)
      outage.start()
      defer { outage.stop() }
      outage.discovering()
      let reached = try await Reached(
        options.destination, options.connection, checksum: options.checksum, overwrites: options.overwrites,
        telling: outage, over: transport)
      outage.answered()
      let opener = try SourceOpener(options.connection, jobs: options.pace.jobs, report, counters, waits)
      if reached.destination.limits.needsLength { opener.needLength() }
      let listing = QueueListing(queue)
      return await withTaskCancellationHandler {
        await QueueSession.run(queue, report) { session in
          do throws(UploadError) {
            let run = try await PushRun(
              options, reached, transport, session.journal, report, counters, outage, waitsForOthers: false)
            return try await send(run, session, listing, opener)
          } catch {
            return error
          }
        }
      } onCancel: {
        queue.stop()
      }
    } catch {
      return error
    }
  }

  private func send(
    _ run: PushRun, _ session: QueueSession, _ listing: QueueListing, _ opener: SourceOpener
  ) async throws(UploadError) -> UploadError? {
    guard let kept = try await destinations(in: session.journal).first else { return nil }
    let destination = try await session.worker.queue.run { queue throws(JournalError) in try queue.destinationID(kept) }
    let push = try await listing.begin(options, destination, session.worker.name)
    let ended = await withTaskGroup(of: (isListing: Bool, error: UploadError?).self) { group in
      group.addTask { (true, await listing.run(self, run, push, destination)) }
      let pages = QueuePages(session, destination, local: run.destinationID) { () throws(JournalError) in
        try listing.isUnfinished(push)
      }
      let feed = PushFeed(
        run, .held(nil), overwrites: options.overwrites, omitsTimes: options.omitsTimes, names: nil)
      group.addTask { (false, await run.run(claiming: pages, feed, opener)) }
      var ended: UploadError?
      for await (isListing, error) in group {
        ended = ended ?? error
        // If the files cannot be listed, what is in the queue is sent by others, or by the next run.
        if error != nil || !isListing { group.cancelAll() }
      }
      return ended
    }
    if let ended { return ended }
    try await listing.tellFailures(of: push, run)
    return nil
  }
}

/// Adds the files of a push to a shared queue, once, and knows when all of them have ended.
final class QueueListing: Sendable {
  private struct State {
    var push: Int64?
    var hasEnded = false
    /// Items that other pushes have added, and all of these of which it is not known that they have ended.
    var others: [Int64] = []
    var open: [Int64] = []
    /// The workers of this process.
    var workers: Set<String> = []
  }
  private let queue: SharedQueue
  private let state = Mutex(State())

  init(_ queue: SharedQueue) { self.queue = queue }

  /// The number of the push, which begins with the first call.
  func begin(_ options: PushOptions, _ destination: Int64, _ worker: String) async throws(UploadError) -> Int64 {
    let known = state.withLock { state in
      state.workers.insert(worker)
      return state.push
    }
    if let known {
      try await queue.run { queue throws(JournalError) in try queue.keepPush(known, by: worker) }
      return known
    }
    let sources = options.given.prefix(3).map { shown($0) }.joined(separator: ", ")
    let push = try await queue.run { queue throws(JournalError) in
      try queue.beginPush(sources, to: destination, by: worker)
    }
    state.withLock { $0.push = push }
    return push
  }

  /// Adds all files that the sources have. Returns the error that ended it early.
  func run(_ command: PushCommand, _ run: PushRun, _ push: Int64, _ destination: Int64) async -> UploadError? {
    if state.withLock({ $0.hasEnded }) { return nil }
    let (options, report, found) = (command.options, run.report, PushCounters())
    let walk = PushWalk(options, report, found, setAside: .giveBack)
    let feed = PushFeed(
      run, .held(nil), overwrites: options.overwrites, omitsTimes: options.omitsTimes, omitsMetadata: true,
      names: options.namesMayMeet ? ClaimedNames() : nil)
    let photos = PhotoBatches()
    do throws(UploadError) {
      let opener = try SourceOpener(options.connection, jobs: options.pace.jobs, report, found, nil)
      while let items = try await photos.next(
        naming: feed.withOwnNames,
        { () async throws(UploadError) in
          guard let opened = await opener.next(of: walk) else { return nil }
          return await feed.found(opened)
        })
      {
        try await add(items, run, push, destination)
      }
      if Task.isCancelled { return UploadError(.giveUp, .cancelled, "interrupted") }
      let isWhole = command.sayWhatFiltersDid(walk, report, found)
      let hasFailed = found.files.failed > 0 || found.isIncomplete.load(ordering: .relaxed)
      if !isWhole || hasFailed { run.counters.isIncomplete.store(true, ordering: .relaxed) }
      if !hasFailed { try await queue.run { queue throws(JournalError) in try queue.endListing(of: push) } }
      let count = found.files.found
      report.notice("\(Quantity.plural(count, "file")) of this push \(count == 1 ? "is" : "are") in the queue")
      state.withLock { $0.hasEnded = true }
      return nil
    } catch {
      return error
    }
  }

  private func add(
    _ items: [UploadItem], _ run: PushRun, _ push: Int64, _ destination: Int64
  ) async throws(UploadError) {
    let intents = items.map { $0.intent(partSize: run.uploader.partSize) }
    let added = try await queue.run { queue throws(JournalError) in
      try queue.add(intents, push: push, to: destination)
    }
    for index in added.done {
      let item = items[index]
      let file = PushedFile(path: item.identity, relative: item.target.plainPath, length: item.info.length)
      run.counters.found(length: item.info.length)
      run.counters.finished(file, how: .doneBefore(.journal))
      run.report.finished(file, how: .doneBefore(.journal))
    }
    for (index, message) in added.refused {
      run.counters.notFound()
      run.report.failed(items[index].identity, message)
    }
    if added.others.isEmpty { return }
    state.withLock { state in
      state.others += added.others
      state.open += added.others
    }
  }

  /// Whether a file of the push may still be sent. Blocks.
  func isUnfinished(_ push: Int64) throws(JournalError) -> Bool {
    let (hasEnded, before) = state.withLock { ($0.hasEnded, $0.open) }
    if !hasEnded { return true }
    var open = before
    let isUnfinished = try queue.isUnfinished(push, &open)
    state.withLock { [open] in $0.open = open }
    return isUnfinished
  }

  /// Reports the files of the push that other processes could not send.
  func tellFailures(of push: Int64, _ run: PushRun) async throws(UploadError) {
    let (others, workers) = state.withLock { ($0.others, $0.workers) }
    func tell(_ failures: [FailedItem]) {
      for failure in failures where !workers.contains(failure.worker) {
        run.counters.notFound()
        run.report.failed(failure.source, "another process could not send it: \(failure.message)")
      }
    }
    var last: Int64 = 0
    while true {
      let failures = try await queue.run { [last] queue throws(JournalError) in
        try queue.failures(of: push, after: last, limit: 1000)
      }
      tell(failures)
      guard let end = failures.last?.id else { break }
      last = end
    }
    for start in stride(from: 0, to: others.count, by: 1000) {
      let ids = Array(others[start..<min(start + 1000, others.count)])
      tell(try await queue.run { queue throws(JournalError) in try queue.failures(among: ids) })
    }
  }
}
