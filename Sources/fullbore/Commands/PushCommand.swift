import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

struct PushCommand: Command {
  static let declaration = CommandDeclaration(
    name: "push", synopsis: "push SOURCE... DESTINATION",
    summary: "upload files and folders; resumes by itself when run again",
    options: PushOptions.declared
      + [
        .flag("delete-after-verify", "delete each file here once its content was proved at the destination")
      ].inGroup(.choice), examples: PushOptions.examples, notes: PushOptions.notes, takesPlaces: true)

  let options: PushOptions
  /// Sources are removed once their content was proved at the destination.
  let removes: Bool

  init(_ arguments: Arguments) throws(UsageError) {
    options = try PushOptions(arguments)
    removes = arguments.flag("delete-after-verify")
    if removes, !options.hasOnlyFiles {
      throw UsageError("--delete-after-verify is for files and folders only: leave it out, or the other sources")
    }
    if removes, options.edits != nil {
      throw UsageError("--delete-after-verify and --edits: a version that is not sent as it is would be lost")
    }
  }

  var outputIsResult: Bool { options.output.isJSON || options.isDryRun }

  func run() async -> ExitStatus {
    let counters = PushCounters()
    let report = pushReport(options.output, counters)
    let began = ContinuousClock.now
    let walk = PushWalk(options, report, counters)
    var ended: UploadError?
    if options.isDryRun {
      await walk.list()
    } else {
      ended = await interruptible { await push(walk, report, counters) }
    }
    var status = ExitStatus(ended, counters)
    if ended == nil, !sayWhatFiltersDid(walk, report, counters) { status = .failed }
    report.summary(
      counters.summary(elapsed: began.duration(to: .now), exit: status, ended: ended, isDryRun: options.isDryRun))
    return status
  }

  /// Reports patterns that matched nothing, and sources in which nothing was found. Returns whether the user can have
  /// meant that.
  private func sayWhatFiltersDid(
    _ walk: PushWalk, _ report: any PushReport, _ counters: PushCounters
  ) -> Bool {
    let filter = options.tree.filter
    if let useless = walk.tally.uselessPatterns(filter) { report.notice(useless) }
    if counters.filesFound.load(ordering: .relaxed) == 0, let complaint = walk.tally.complaint(filter) {
      report.ended(complaint)
      return false
    }
    return walk.emptySources.tell(report, checks: options.checks)
  }

  /// Returns the error that ended the push early; nil: none did.
  private func push(_ walk: PushWalk, _ report: any PushReport, _ counters: PushCounters) async -> UploadError? {
    for notice in options.notices { report.notice(notice) }
    do throws(UploadError) {
      let transport = SocketTransport(try options.connection.transportOptions(at: options.pace))
      untilExit.withLock { $0.append(transport) }
      // The first connection is made while the journal is opened.
      expect(1, over: transport)
      let journal = try await openJournal(options.journal, report.notice)
      // Recorded before the first request, so that `status` and `resume` know a push that is killed or rejected.
      let listing = try await beginListing(options, in: journal)
      let outage = OutageMonitor(options.destination.endpoint, report, counters)
      outage.start()
      defer { outage.stop() }
      outage.discovering()
      async let asked = reached(telling: outage, over: transport)
      if !options.readsStandardInput { expect(await walk.lookAhead(), over: transport) }
      let answer = await asked
      if case .failure(let error) = answer { try await listing.end(after: error, in: journal) }
      let reached = try answer.get()
      outage.answered()
      var run = try await PushRun(options, reached, transport, journal, report, counters, outage)
      // Each file is proved once, before it is removed.
      if removes { run.verifies = false }
      if options.readsStandardInput, let plan = run.uploader.pipePlan, let most = plan.most {
        // Whole GiB, rounded down.
        let whole = most < 1 << 30 ? most : (most >> 30) << 30
        report.notice(
          "standard input: \(Quantity.text(bytes: whole)) at most, in parts of \(Quantity.text(bytes: plan.partSize)); "
            + "--spool-memory or --spool-dir raise it")
      }
      let feed = try PushFeed(
        run, .held(walk.promised), edits: options.edits, overwrites: options.overwrites,
        omitsTimes: options.omitsTimes, names: options.namesMayMeet ? ClaimedNames() : nil)
      let ended = await run.run(
        { () async throws(UploadError) in
          if let items = await feed.next(of: walk) { return items }
          // The batches before this one are claimed. The listing stays if files may be missing from the journal: the next
          // push must find them again. If a source is empty now, it may have contained files that an earlier push did not
          // reach.
          let hasLost = listing.followsUnread && !walk.emptySources.isEmpty
          if !Task.isCancelled, !hasLost, !counters.isIncomplete.load(ordering: .relaxed) {
            try await endListings([listing.id], in: journal)
          }
          return nil
        }, renaming: feed)
      if ended == nil {
        try await walk.emptySources.look(
          in: journal, destination: run.destinationID, followsUnread: listing.followsUnread)
      }
      if ended == nil, removes {
        let removal = SourceRemoval(options, run, report)
        do throws(UploadError) {
          if try await !removal.run() { counters.isIncomplete.store(true, ordering: .relaxed) }
        } catch {
          throw await told(error, journal)
        }
      }
      await journal.close()
      return ended
    } catch {
      report.tell(error)
      return error
    }
  }

  private func expect(_ bodies: Int, over transport: SocketTransport) {
    // A pipe may be sent as one body of unknown length.
    if !options.readsStandardInput { transport.expect(bodiesAt: options.destination.endpoint, atMost: bodies) }
  }

  private func reached(telling outage: OutageMonitor, over transport: SocketTransport) async -> Result<
    Reached, UploadError
  > {
    do throws(UploadError) {
      return .success(
        try await Reached(
          options.destination, options.connection, checksum: options.checksum, form: options.form,
          isStream: options.readsStandardInput, overwrites: options.overwrites,
          checks: options.checks, telling: outage, over: transport))
    } catch {
      return .failure(error)
    }
  }
}

/// Transports that live until the process exits, when the system closes their connections: closing 64 of them one by
/// one would take longer than everything else at the end.
private let untilExit = Mutex<[SocketTransport]>([])
