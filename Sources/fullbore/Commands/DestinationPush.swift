import BlobClient
import BlobUpload
import Blobs

/// One destination of a push: it sends there what the walk finds.
struct DestinationPush: Sendable {
  private let options: PushOptions
  private let report: any PushReport
  private let counters: PushCounters
  /// The number of the destination among all.
  private let index: Int
  private let transport: SocketTransport
  private let journal: Journal
  private let walk: PushWalk
  private let shared: SharedWalk
  private let opener: SourceOpener
  /// Sources are removed once their content was proved at the destination.
  private let removes: Bool

  init(
    _ output: DestinationOutput, _ index: Int, over transport: SocketTransport, _ journal: Journal, _ walk: PushWalk,
    _ shared: SharedWalk, _ opener: SourceOpener, removes: Bool
  ) {
    (options, report, counters) = (output.options, output.report, output.counters)
    (self.index, self.transport, self.journal) = (index, transport, journal)
    (self.walk, self.shared, self.opener, self.removes) = (walk, shared, opener, removes)
  }

  /// Returns the error that ended this destination early; nil: none did. The other destinations go on.
  func run(_ waits: SourceWaits) async -> UploadError? {
    defer { shared.leave(index) }
    for notice in options.notices { report.notice(notice) }
    do throws(UploadError) {
      // Recorded before the first request, so that `status` and `resume` know a push that is killed or rejected.
      let listing = try await beginListing(options, in: journal)
      let outage = OutageMonitor(options.destination.endpoint, report, counters, sources: waits)
      outage.start()
      defer { outage.stop() }
      outage.discovering()
      let reached: Reached
      do throws(UploadError) {
        reached = try await Reached(
          options.destination, options.connection, checksum: options.checksum, form: options.form,
          isStream: options.readsStandardInput, overwrites: options.overwrites,
          checks: options.asksServer, telling: outage, over: transport)
      } catch {
        try await listing.end(after: error, in: journal)
        throw error
      }
      outage.answered()
      return try await send(reached, listing, outage)
    } catch {
      report.tell(error)
      return error
    }
  }

  private func send(
    _ reached: Reached, _ listing: BegunListing, _ outage: OutageMonitor
  ) async throws(UploadError) -> UploadError? {
    if reached.destination.limits.needsLength { opener.needLength() }
    var run = try await PushRun(options, reached, transport, journal, report, counters, outage)
    // Each file is proved once, before it is removed. A sealed file can be read back only while its key is known.
    if removes, options.seal.sealing == nil { run.settings.verifies = false }
    var lists: HashListRun?
    if let wanted = options.hashLists {
      let listed = await BlockingPool.shared.run { [options] in ListedFolders(wanted, options) }
      run.listed = listed
      lists = HashListRun(run: run, push: options, folders: listed, writesAtSource: index == 0)
    }
    tellLimitOfPipe(run)
    let feed = PushFeed(
      run, .held(walk.promised), edits: options.edits, overwrites: options.overwrites,
      omitsTimes: options.omitsTimes, names: options.namesMayMeet ? ClaimedNames() : nil)
    let photos = PhotoBatches()
    let ended = await run.run(
      { [lists] () async throws(UploadError) in
        try await lists?.flush()
        let found = try await photos.next(naming: feed.withOwnNames) { () async throws(UploadError) in
          guard let opened = try await shared.next(for: index) else { return nil }
          return await feed.found(opened)
        }
        if let found { return found }
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
      try await lists?.finish()
      if removes { try await remove(run) }
    }
    return ended
  }

  private func remove(_ run: PushRun) async throws(UploadError) {
    do throws(UploadError) {
      let areAllRemoved = try await SourceRemoval(options, run, report).run()
      if !areAllRemoved { counters.isIncomplete.store(true, ordering: .relaxed) }
    } catch {
      throw await completed(error, journal)
    }
  }

  private func tellLimitOfPipe(_ run: PushRun) {
    guard options.readsStandardInput, let plan = run.uploader.pipePlan, let most = plan.most else { return }
    // Whole GiB, rounded down.
    let whole = most < 1 << 30 ? most : (most >> 30) << 30
    report.notice(
      "standard input: \(Quantity.text(bytes: whole)) at most, in parts of \(Quantity.text(bytes: plan.partSize)); "
        + "--spool-memory or --spool-dir raise it")
  }
}
