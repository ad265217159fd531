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
      + HashListOptions.declared
      + [
        .flag("delete-after-verify", "delete each file here once its content was proved at the destination")
      ].inGroup(.choice), examples: PushOptions.examples, notes: PushOptions.notes, takesPlaces: true)

  private(set) var options: PushOptions
  /// Sources are removed once their content was proved at the destination.
  let removes: Bool

  init(_ arguments: Arguments) throws(UsageError) {
    options = try PushOptions(arguments, sharing: true)
    removes = arguments.flag("delete-after-verify")
    options.hashLists = try HashListOptions(arguments, options)
    for index in options.also.indices { options.also[index].hashLists = options.hashLists }
    options.tree.leavesOutHistories = options.hashLists != nil
    if options.queue != nil { try options.checkForQueue(removes: removes) }
    if removes, options.hashLists?.place ?? .destination != .destination {
      throw UsageError(
        "--delete-after-verify and --mhl-at \(options.hashLists?.place.rawValue ?? ""): the list would be of files that are gone"
      )
    }
    if removes, !options.hasOnlyFiles {
      throw UsageError("--delete-after-verify is for files and folders only: leave it out, or the other sources")
    }
    if removes, !options.also.isEmpty {
      throw UsageError(
        "--delete-after-verify and --also: run the push with --also first, then with --delete-after-verify for the "
          + "destination that must have everything")
    }
    if removes, options.edits != nil {
      throw UsageError("--delete-after-verify and --edits: a version that is not sent as it is would be lost")
    }
  }

  var outputIsResult: Bool { options.output.isJSON || options.isDryRun }

  func run() async -> ExitStatus {
    if let queue = options.queue, !options.isDryRun { return await run(sharing: queue) }
    let output = PushOutput(options)
    let walk = PushWalk(
      options, output.report, output.counters, setAside: options.isDryRun ? .fail : .giveBack)
    var ended: [UploadError?] = options.all.map { _ in nil }
    if options.isDryRun {
      await walk.list(to: output.destinations)
    } else {
      ended = await interruptible { await push(walk, output) }
    }
    // If every destination has ended early, the sources were not looked at, or not completely.
    let hasFailed = ended.contains { $0 == nil } && !sayWhatFiltersDid(walk, output.report, output.counters)
    return output.end(ended, failed: hasFailed, isDryRun: options.isDryRun)
  }

  /// Reports patterns that matched nothing, and sources in which nothing was found. Returns whether the user can have
  /// meant that.
  func sayWhatFiltersDid(
    _ walk: PushWalk, _ report: any PushReport, _ counters: PushCounters
  ) -> Bool {
    let filter = options.tree.filter
    if let useless = walk.tally.uselessPatterns(filter) { report.notice(useless) }
    if counters.files.found == 0, let complaint = walk.tally.complaint(filter) {
      report.ended(complaint)
      return false
    }
    return walk.emptySources.tell(report, checks: options.checks)
  }

  /// Returns for each destination the error that ended it early; nil: none did.
  private func push(_ walk: PushWalk, _ output: PushOutput) async -> [UploadError?] {
    do throws(UploadError) {
      let transports = try options.all.map { options throws(UploadError) in
        SocketTransport(try options.connection.transportOptions(at: options.pace, sharing: options.limiter))
      }
      untilExit.withLock { $0 += transports }
      // The first connections are made while the journal is opened.
      expect(1, over: transports)
      let journal = try await openJournal(options.journal, output.report.notice)
      let waits = SourceWaits()
      let opener = try SourceOpener(
        options.connection, jobs: options.pace.jobs, destinations: output.destinations.count, output.report,
        output.counters, waits)
      let shared = SharedWalk(destinations: output.destinations.count)
      let ended = await withTaskGroup(of: (index: Int, error: UploadError?)?.self) { group in
        group.addTask {
          if !options.readsStandardInput { expect(await walk.lookAhead(), over: transports) }
          await shared.serve(walk, opener)
          return nil
        }
        for (index, destination) in output.destinations.enumerated() {
          let push = DestinationPush(
            destination, index, over: transports[index], journal, walk, shared, opener, removes: removes)
          group.addTask { (index, await push.run(waits)) }
        }
        var ended: [UploadError?] = output.destinations.map { _ in nil }
        var running = ended.count
        while running > 0, let end = await group.next() {
          // The walk has ended.
          guard let end else { continue }
          ended[end.index] = end.error
          running -= 1
        }
        group.cancelAll()
        return ended
      }
      await journal.close()
      return ended
    } catch {
      output.report.tell(error)
      return options.all.map { _ in error }
    }
  }

  private func expect(_ bodies: Int, over transports: [SocketTransport]) {
    // A pipe may be sent as one body of unknown length.
    if options.readsStandardInput { return }
    for (options, transport) in zip(options.all, transports) {
      transport.expect(bodiesAt: options.destination.endpoint, atMost: bodies)
    }
  }
}

/// Transports that live until the process exits, when the system closes their connections: closing 64 of them one by
/// one would take longer than everything else at the end.
private let untilExit = Mutex<[SocketTransport]>([])
