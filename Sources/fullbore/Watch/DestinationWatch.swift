import BlobClient
import BlobUpload
import Blobs

/// The watch of one destination.
struct DestinationWatch: Sendable {
  private let options: WatchOptions
  private let report: any PushReport
  private let counters: PushCounters
  /// The number of the destination among all.
  private let index: Int
  private let journal: Journal
  private let arrived: ArrivedFiles?

  init(
    _ output: DestinationOutput, _ index: Int, _ options: WatchOptions, _ journal: Journal, _ arrived: ArrivedFiles?
  ) {
    var options = options
    options.push = output.options
    (self.options, self.index, self.journal, self.arrived) = (options, index, journal, arrived)
    (report, counters) = (output.report, output.counters)
  }

  /// Runs again and again as long as the destination may only be temporarily away. Returns the error that ended the
  /// watch, and what is left.
  func run() async -> (UploadError, WatchEnd) {
    for notice in options.push.notices { report.notice(notice) }
    do throws(UploadError) {
      // `status` lists a watch that ends before it has seen all files, like a push.
      let listing = try await beginListing(options.push, in: journal)
      let feed = try WatchFeed(options, report, counters)
      var absence = Absence(report)
      let outage = OutageMonitor(options.push.destination.endpoint, report, counters)
      outage.start()
      defer { outage.stop() }
      let names = options.push.namesMayMeet ? ClaimedNames() : nil
      let summary = DailySummary(report, counters)
      defer { summary.stop() }
      // Files this process has sent: if the server has accepted some, later rejections may be temporary.
      var known = 0
      while true {
        let (error, hasAnswered) = await send(feed, listing, names, outage)
        let sent = counters.files.sent
        if sent > known { absence = Absence(report) }
        known = sent
        let mayPass = error.side == .destination && (known > 0 || error.isTemporary)
        let isAway = error.side == .destination || !hasAnswered
        guard mayPass, !Task.isCancelled, await absence.passes(error, outage) else {
          try await listing.end(after: error, in: journal)
          report.tell(error)
          return (
            Task.isCancelled ? UploadError(.giveUp, .cancelled, "interrupted") : error, isAway ? .away : left(feed)
          )
        }
        await feed.restart()
      }
    } catch {
      report.tell(error)
      return (error, .unlisted)
    }
  }

  private func left(_ feed: WatchFeed) -> WatchEnd {
    if !counters.isListed.load(ordering: .relaxed) { return .unlisted }
    let count = counters.files.open + feed.inbox.settling.load(ordering: .relaxed)
    return count > 0 ? .left(count) : .nothingLeft
  }

  /// Sends until it is cancelled, or until nothing else can succeed. Reads the credentials again. Also returns whether the
  /// destination has answered.
  private func send(
    _ feed: WatchFeed, _ listing: BegunListing, _ names: ClaimedNames?, _ outage: OutageMonitor
  ) async -> (UploadError, hasAnswered: Bool) {
    let push = options.push
    var hasAnswered = false
    do throws(UploadError) {
      let transport = SocketTransport(try push.connection.transportOptions(at: push.pace, sharing: push.limiter))
      outage.discovering()
      let reached = try await Reached(
        push.destination, push.connection, checksum: push.checksum, form: push.form,
        overwrites: push.overwrites, checks: push.asksServer, telling: outage, over: transport)
      outage.answered()
      hasAnswered = true
      var run = try await PushRun(
        push, reached, transport, journal, report, counters, outage, waitsForOthers: false)
      run.settings.replacesGrown = true
      let observer = WatchObserver(feed, report, counters, options, outage) { [arrived, index] file in
        arrived?.add(file, at: index)
      }
      let opener = try SourceOpener(push.connection, jobs: push.pace.jobs, report, counters, outage.sources)
      let items = PushFeed(
        run, .byName, edits: push.edits, overwrites: push.overwrites, omitsTimes: push.omitsTimes, names: names
      ) { item, error in observer.ended(item, nil, .failed(error)) }
      let ended = await run.send(
        { [run] () async throws(UploadError) in
          // All earlier batches are claimed.
          if await feed.takeListed(), !counters.isIncomplete.load(ordering: .relaxed) {
            try await endListings([listing.id], in: journal)
          }
          if feed.inbox.takeSeeksDeleted() { try await endUploadsOfDeletedFiles(run) }
          // The feed's thread may be blocked in a folder of a server that is gone.
          let found = await untilCancelled(wakeUp: { feed.wake() }) { await feed.next() }
          guard case let found?? = found else { return nil }
          let opened = await opener.open(found.map { FoundSource($0) })
          if opened.count < found.count, !Task.isCancelled { feed.endUnopened(found, opened) }
          return await items.withOwnNames(PhotoBatches.grouped(await items.items(opened)))
        }, observer, renaming: items)
      return (ended ?? UploadError(.giveUp, .cancelled, "interrupted"), hasAnswered)
    } catch {
      return (error, hasAnswered)
    }
  }

  /// Gives up the unfinished uploads of files that were deleted, here and at the server.
  private func endUploadsOfDeletedFiles(_ run: PushRun) async throws(UploadError) {
    let deleted = DeletedFiles(in: options.push.sources)
    let leftovers = Leftovers(run.uploader, journal: journal, destinationID: run.destinationID)
    try await unfinishedPages(in: journal, at: [run.destinationID]).read { page throws(UploadError) in
      let entries = await deleted.find(page)
      if entries.isEmpty { return true }
      // An upload that the server does not delete now is deleted when the next file is deleted.
      let ended = await leftovers.delete(entries.map(\.id), failures: 1)
      for entry in ended {
        report.notice(
          "\(entry.intent.source) was deleted before all of it was sent: its unfinished upload is given up, here and at "
            + "\(options.push.destination.endpoint)")
      }
      return ended.count == entries.count
    }
  }
}

extension WatchFeed {
  /// Files that could not be opened are reported and counted as failed.
  fileprivate nonisolated func endUnopened(_ found: [TreeItem], _ opened: [OpenedSource]) {
    let paths = Set(opened.map(\.found.identity))
    for item in found where !paths.contains(item.path) { inbox.endUnopened(item.path, item.stamp) }
  }
}

/// A destination that is away: tried again with growing delays. An outage is reported by its monitor, and another error once.
private struct Absence {
  private static let longest = Duration.seconds(60)
  private let report: any PushReport
  private var wait = Duration.seconds(1)
  private var reported: String?

  init(_ report: any PushReport) { self.report = report }

  /// Waits; false if the task was cancelled meanwhile.
  mutating func passes(_ error: UploadError, _ outage: OutageMonitor) async -> Bool {
    outage.failed(error, next: wait)
    if !error.isOfOutage, reported != error.message {
      report.notice(
        "\(error.message). The watch goes on and begins anew, at least every \(Quantity.text(Self.longest))")
      reported = error.message
    }
    do { try await Task.sleep(for: wait) } catch { return false }
    wait = min(wait * 2, Self.longest)
    return true
  }
}
