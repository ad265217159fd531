import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Platform

struct WatchCommand: Command {
  static let declaration = CommandDeclaration(
    name: "watch", synopsis: "watch FOLDER... DESTINATION",
    summary: "push what is there, then keep pushing what arrives",
    options: WatchOptions.declared,
    examples: [
      .init(
        "watch DCIM/ http://nas:8080/2026/ --layout '{year}/{month}/{name}'",
        "what is there, and what arrives from now on")
    ], notes: WatchOptions.notes, takesPlaces: true)

  let options: WatchOptions

  init(_ arguments: Arguments) throws(UsageError) { options = try WatchOptions(arguments) }

  var outputIsResult: Bool { options.push.output.isJSON || options.push.isDryRun }

  func run() async -> ExitStatus {
    // SIGIO arrives when another process waits to write a file while this one holds a lease to check for writers.
    signal(SIGIO, SIG_IGN)
    let push = options.push
    let counters = PushCounters()
    let report = pushReport(push.output, counters)
    let began = ContinuousClock.now
    var (ended, end): (UploadError?, WatchEnd?) = (nil, nil)
    if push.isDryRun {
      await PushWalk(push, report, counters, isWatch: true).list()
    } else {
      let (error, left) = await interruptible { await watch(report, counters) }
      (ended, end) = (error, left)
    }
    let status = ExitStatus(ended, counters)
    var summary = counters.summary(
      elapsed: began.duration(to: .now), exit: status, ended: ended, isDryRun: push.isDryRun)
    summary.watch = end
    report.summary(summary)
    return status
  }

  /// Runs again and again as long as the destination may only be temporarily away. Returns the error that ended the
  /// watch, and what is left.
  private func watch(_ report: any PushReport, _ counters: PushCounters) async -> (UploadError, WatchEnd) {
    for notice in options.push.notices { report.notice(notice) }
    do throws(UploadError) {
      let journal = try await openJournal(options.push.journal, report.notice)
      // `status` lists a watch that ends before it has seen all files, like a push.
      let listing = try await beginListing(options.push, in: journal)
      let feed = try WatchFeed(options, report, counters)
      var absence = Absence(report)
      let outage = OutageMonitor(options.push.destination.endpoint, report, counters)
      outage.start()
      defer { outage.stop() }
      let names = options.push.namesMayMeet ? ClaimedNames() : nil
      let arrived = options.command?.queue(
        atMost: 10_000, output: report.programOutput, notice: { report.notice($0) }
      ) { (file: ArrivedFile) in
        if file.isUnchanged { return file.path }
        report.notice(
          "\(file.title) is another version than the one that was sent, or gone: --on-done does not get it now")
        return nil
      }
      let summary = DailySummary(report, counters)
      defer { summary.stop() }
      // Files this process has sent: if the server has accepted some, later rejections may be temporary.
      var known = 0
      while true {
        let (error, hasAnswered) = await send(feed, journal, listing, names, outage, arrived, report, counters)
        let sent = counters.filesSent.load(ordering: .relaxed)
        if sent > known { absence = Absence(report) }
        known = sent
        let mayPass = error.side == .destination && (known > 0 || error.isTemporary)
        let isAway = error.side == .destination || !hasAnswered
        guard mayPass, !Task.isCancelled, await absence.passes(error, outage) else {
          await arrived?.finish(within: .seconds(10))
          try await listing.end(after: error, in: journal)
          report.tell(error)
          await journal.close()
          return (
            Task.isCancelled ? UploadError(.giveUp, .cancelled, "interrupted") : error,
            isAway ? .away : left(counters, feed)
          )
        }
        await feed.restart()
      }
    } catch {
      report.tell(error)
      return (error, .unlisted)
    }
  }

  private func left(_ counters: PushCounters, _ feed: WatchFeed) -> WatchEnd {
    if !counters.isListed.load(ordering: .relaxed) { return .unlisted }
    let count = counters.filesOpen + feed.inbox.settling.load(ordering: .relaxed)
    return count > 0 ? .left(count) : .nothingLeft
  }

  /// Sends until it is cancelled, or until nothing else can succeed. Reads the credentials again. Also returns whether the
  /// destination has answered.
  private func send(
    _ feed: WatchFeed, _ journal: Journal, _ listing: BegunListing, _ names: ClaimedNames?, _ outage: OutageMonitor,
    _ arrived: FileQueue<ArrivedFile>?, _ report: any PushReport, _ counters: PushCounters
  ) async -> (UploadError, hasAnswered: Bool) {
    let push = options.push
    var hasAnswered = false
    do throws(UploadError) {
      let transport = SocketTransport(try push.connection.transportOptions(at: push.pace))
      outage.discovering()
      let reached = try await Reached(
        push.destination, push.connection, checksum: push.checksum, form: push.form,
        overwrites: push.overwrites, checks: push.checks, telling: outage, over: transport)
      outage.answered()
      hasAnswered = true
      var run = try await PushRun(
        push, reached, transport, journal, report, counters, outage, waitsForOthers: false)
      run.replacesGrown = true
      let observer = WatchObserver(feed, report, counters, options, arrived, outage)
      let items = try PushFeed(
        run, .byName, edits: push.edits, overwrites: push.overwrites, omitsTimes: push.omitsTimes, names: names
      ) { item, error in observer.ended(item, nil, .failed(error)) }
      let ended = await run.send(
        { () async throws(UploadError) in
          // All earlier batches are claimed.
          if await feed.takeListed(), !counters.isIncomplete.load(ordering: .relaxed) {
            try await endListings([listing.id], in: journal)
          }
          // The feed's thread may be blocked in a folder of a server that is gone.
          let found = await untilCancelled(wakeUp: { feed.wake() }) { await feed.next() }
          guard case let found?? = found else { return nil }
          return await items.items(found.map { FoundSource($0) })
        }, observer, renaming: items)
      return (ended ?? UploadError(.giveUp, .cancelled, "interrupted"), hasAnswered)
    } catch {
      return (error, hasAnswered)
    }
  }
}

/// A destination that is away: reported once, and tried again with growing delays.
private struct Absence {
  private static let longest = Duration.seconds(60)
  private let report: any PushReport
  private var wait = Duration.seconds(1)
  private var told: String?

  init(_ report: any PushReport) { self.report = report }

  /// Waits; false if the task was cancelled meanwhile.
  mutating func passes(_ error: UploadError, _ outage: OutageMonitor) async -> Bool {
    outage.failed(error, next: wait)
    if told != error.message {
      report.notice("\(error.message): trying again, at least every \(Quantity.text(Self.longest))")
      told = error.message
    }
    do { try await Task.sleep(for: wait) } catch { return false }
    wait = min(wait * 2, Self.longest)
    return true
  }
}
