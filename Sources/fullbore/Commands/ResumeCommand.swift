import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

struct ResumeCommand: Command {
  static let declaration = CommandDeclaration(
    name: "resume", synopsis: "resume [DESTINATION]",
    summary: "finish what earlier pushes left unfinished",
    options: OutputOptions.declared + PaceOptions.declared + ConnectionOptions.declared
      + [sharedJournalOption].inGroup(.output),
    examples: [
      .init("resume", "finish everything that earlier pushes left unfinished, at every server"),
      .init("resume nas:", "only what goes to the place 'nas'"),
      .init("resume https://nas.example/2026/ --bwlimit 20Mbit", "only what goes there or below it, at this speed"),
    ],
    notes: """
      DESTINATION is a URL as 'fullbore status' shows it, s3://bucket/prefix, gs://bucket/prefix, or a place: only what goes
      there, or below it, is finished. A URL that was pushed to with a query is given with its query again, since the
      journal does not keep that.
      A push that ended before all its files were known, or could not read some, cannot be finished here: it is named, and
      has to be run again.
      Names that a push with --seal-names could not send are sent too.
      Nothing is deleted here: a push with --delete-after-verify is run again for that.
      A file whose name is taken gets another name where the push had --on-conflict rename.
      A file that is gone stays unfinished, and each resume names it and exits with status 1, until the file is put back or
      given up with 'fullbore abort ID'. What a watch finds to be deleted, it gives up itself.
      What was pushed with --verify is read back here too. --jobs, --parts-at-once and --bwlimit of the push are not kept:
      what is not given here is as if it had not been given there.
      With --journal postgres://USER@HOST/DB, the queue of several machines, this is one of its uploaders: it sends what any
      push has added, takes over what a process that has died was sending, and ends when nothing is left that it could send.
      Credentials and certificates come from where they were when the push began, and those of a place from that place as
      it is now. Those given here are for one server, so with unfinished uploads for several, DESTINATION must name one.
      Exit status: 0 everything is there; 1 a file failed, is gone or was refused, or a push has to be run again; 2 wrong
      usage; 3 a destination cannot be reached or refuses us; 130 interrupted.
      """, takesPlaces: true)

  let choice: DestinationChoice
  let pace: PaceOptions
  let connection: ConnectionOptions
  /// A file of this process only, if there is a queue.
  let journal: BytePath
  /// The URL of the queue that several machines share; nil: there is none. It may have a password.
  let queue: String?
  let output: OutputOptions

  init(_ arguments: Arguments) throws(UsageError) {
    let arguments = try arguments.withPlace()
    choice = try DestinationChoice(arguments.operands)
    pace = try PaceOptions(arguments)
    connection = try ConnectionOptions(arguments)
    queue = try sharedQueue(arguments)
    journal = queue == nil ? try journalPath(arguments) : QueueSession.journalPath
    output = try OutputOptions(arguments)
  }

  var outputIsResult: Bool { output.isJSON }

  func run() async -> ExitStatus {
    let counters = PushCounters()
    let report = pushReport(output, counters)
    let began = ContinuousClock.now
    let ended = await interruptible {
      if let queue { await resume(sharing: queue, report, counters) } else { await resume(report, counters) }
    }
    let error: UploadError?
    switch ended {
    case .success(let ended): error = ended
    case .failure(let refusal):
      report.ended("\(refusal.message). See 'fullbore resume --help'")
      report.summary(counters.summary(elapsed: began.duration(to: .now), exit: .usage))
      return .usage
    }
    let status = ExitStatus(error, counters)
    report.summary(counters.summary(elapsed: began.duration(to: .now), exit: status, ended: error))
    return status
  }

  /// Resumes each destination in turn; one that cannot be reached does not prevent the others.
  private func resume(
    _ report: any PushReport, _ counters: PushCounters
  ) async -> Result<UploadError?, UsageError> {
    var first: UploadError?
    do throws(UploadError) {
      let journal = try await openJournal(journal, report.notice)
      var (begun, refused): ([Int64: JournalDestination], [Int64]) = ([:], [])
      var endpoints: Set<String> = []
      var pages = try await unfinishedPages(in: journal)
      try await pages.read { page in
        for entry in page where choice.contains(entry.destination) {
          if entry.state != .refused {
            begun[entry.destinationID] = entry.destination
          } else if entry.owner == nil && !entry.isLeftover {
            refused.append(entry.id)
          } else {
            continue
          }
          endpoints.insert(entry.destination.endpoint)
        }
        return true
      }
      // Everything is there, and what it is called is not.
      for (id, destination) in try await unindexed(in: journal) where choice.contains(destination) {
        begun[id] = destination
        endpoints.insert(destination.endpoint)
      }
      let listings = try await unreadListings(in: journal).filter { choice.contains($0.destination) }
      let reports = DestinationReports(report, counters, of: endpoints.union(listings.map(\.destination.endpoint)))
      let known = try await destinations(in: journal)
      do throws(UsageError) {
        try choice.check(isAmong: known)
        try connection.check(
          isForAll: Array(begun.values), "Name one: 'fullbore resume URL', with these options")
      } catch {
        await journal.close()
        return .failure(error)
      }
      for (id, destination) in begun.sorted(by: { $0.key < $1.key }) {
        pages.destinations = [id]
        let ended = await resume(at: destination, id, journal, reports[destination], counters) { [pages] begun in
          await begun.run(pages)
        }
        if let ended, ended.side == .cancelled || ended.side == .journal { return .success(ended) }
        first = first ?? ended
      }
      // Files that this run has tried are already reported.
      let before = Set(refused)
      pages.destinations = nil
      if !before.isEmpty {
        try await pages.read { page in
          for entry in page where entry.state == .refused && before.contains(entry.id) {
            counters.notFound()
            let message = "\(entry.error ?? "it was refused"). \(entry.refusalRemedy)"
            reports[entry.destination].failed(entry.intent.source, message)
          }
          return true
        }
      }
      for listing in listings {
        // The journal does not contain the names of missing files, nor the options that selected them.
        counters.isIncomplete.store(true, ordering: .relaxed)
        reports[listing.destination].ended("\(listing.complaint): \(JournalListing.remedy)")
      }
      await journal.close()
    } catch {
      report.tell(error)
      return .success(error)
    }
    return .success(first)
  }

  /// Reaches a destination again, and lets `send` do the rest. Returns the error that ended it early, which is reported.
  func resume(
    at begun: JournalDestination, _ id: Int64, _ journal: Journal, _ report: any PushReport, _ counters: PushCounters,
    _ send: (ResumedRun) async -> UploadError?
  ) async -> UploadError? {
    do throws(UploadError) {
      let kept = try choice.completed(begun)
      let connection = try connection.completed(from: kept)
      let pace = try pace.completed(for: kept)
      let transport = SocketTransport(try connection.transportOptions(at: pace))
      let outage = HTTPURL(kept.endpoint).map { OutageMonitor($0, report, counters) }
      outage?.start()
      defer { outage?.stop() }
      outage?.discovering()
      var destination = try await Reached(kept, connection, telling: outage, over: transport).destination
      destination.sealing = try await SealOptions.sealing(of: begun, journal)
      try destination.goOn(with: begun)
      outage?.answered()
      var run = PushRun(
        destination: destination, transport: transport, journal: journal, destinationID: id, report: report,
        counters: counters)
      run.settings = SendSettings(
        retries: connection.retries, jobs: pace.jobs, partsAtOnce: pace.partsAtOnce, verifies: kept.verifies == true)
      run.isResume = true
      if kept.renames == true { (run.settings.onConflict, run.renamed) = (.rename, RenamedFiles()) }
      run.outage = outage
      let feed = PushFeed(
        run, .held(nil), overwrites: kept.overwrite, omitsTimes: kept.omitsTimes == true, names: ClaimedNames())
      let opener = try SourceOpener(connection, jobs: pace.jobs, report, counters, outage?.sources)
      if destination.limits.needsLength { opener.needLength() }
      return await send(ResumedRun(run: run, feed: feed, opener: opener))
    } catch {
      report.tell(error)
      return error
    }
  }
}

/// A destination that was reached again, and what sends the files that earlier pushes have left unfinished there.
struct ResumedRun: Sendable {
  let run: PushRun
  let feed: PushFeed
  let opener: SourceOpener

  /// Sends the sources of these entries.
  func run(_ pages: JournalPages) async -> UploadError? {
    let walk = ResumeWalk(pages, run.report, run.counters)
    let groups = PhotoBatches()
    return await run.run(
      { () async throws(UploadError) in
        try await groups.next(naming: feed.withOwnNames) { () async throws(UploadError) in
          let opened = await opener.next(of: walk)
          if let failure = await walk.failure { throw UploadError(journal: failure) }
          guard let opened else { return nil }
          return await feed.found(opened)
        }
      }, renaming: feed)
  }
}

/// The reports of a resume: if it is about several destinations, each line and event says which one it is about.
struct DestinationReports {
  private let whole: any PushReport
  private let each: [String: any PushReport]

  /// `endpoints`: the URLs of the destinations, as the journal has them.
  init(_ whole: any PushReport, _ counters: PushCounters, of endpoints: Set<String>) {
    self.whole = whole
    each =
      endpoints.count < 2
      ? [:]
      : Dictionary(
        uniqueKeysWithValues: endpoints.map {
          ($0, whole.about(ReportedDestination(title: shown($0), url: $0, counters: counters)))
        })
  }

  subscript(_ destination: JournalDestination) -> any PushReport { each[destination.endpoint] ?? whole }
}
