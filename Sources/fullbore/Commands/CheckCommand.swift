import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Platform

struct CheckCommand: Command {
  static let declaration = CommandDeclaration(
    name: "check", synopsis: "check SOURCE... DESTINATION",
    summary: "say whether all files are at the destination with the same content",
    options: CheckOptions.declared,
    examples: [
      .init("check /media/card/DCIM/ nas:2026/", "whether the card may be formatted; exit status 0 says so"),
      .init(
        "check DCIM/ dav+https://cloud.example/dav/ --netrc --download", "reads every file back and compares all bytes"),
    ], notes: CheckOptions.notes, takesPlaces: true, refused: CheckOptions.refused)

  private enum Work {
    case destination(DestinationCheck)
    case hashLists(HashListCheck)
  }
  private let work: Work

  init(_ arguments: Arguments) throws(UsageError) {
    work =
      arguments.isGiven("mhl")
      ? .hashLists(try HashListCheck(arguments)) : .destination(DestinationCheck(options: try CheckOptions(arguments)))
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    switch work {
    case .destination(let check): await check.run()
    case .hashLists(let check): await check.run()
    }
  }
}

/// Compares sources with a destination.
struct DestinationCheck: Sendable {
  let options: CheckOptions

  func run() async -> ExitStatus {
    let counters = PushCounters(readsOnly: true)
    let report = CheckReport(options, counters)
    let began = ContinuousClock.now
    let walk = PushWalk(options.push, report, counters, setAside: .fail)
    let ended = await interruptible { await check(walk, report, counters) }
    var status = ExitStatus(ended, counters)
    let filter = options.push.tree.filter
    if ended == nil {
      if let useless = walk.tally.uselessPatterns(filter) { report.notice(useless) }
      if let complaint = walk.tally.complaint(filter), report.totals.files == 0 { report.ended(complaint) }
      if !walk.emptySources.tell(report, checks: true) { status = .failed }
    }
    var totals = report.totals
    (totals.hidden, totals.leftOut) = (counters.files.hidden, counters.files.leftOut)
    totals.filtered = walk.tally.filtered
    totals.beside = await BlockingPool.shared.run { [sources = options.push.sources] in CardRest.paths(beside: sources)
    }
    if status == .ok, !totals.areAllProved { status = .failed }
    let problem = problem(ended, status, totals)
    report.finish(totals, status, problem, elapsed: began.duration(to: .now))
    return status
  }

  /// Why the results say nothing of all sources; nil: they do.
  private func problem(_ ended: UploadError?, _ status: ExitStatus, _ totals: CheckTotals) -> String? {
    let count = "after \(Quantity.plural(totals.files, "file"))"
    if let ended {
      return ended.side == .cancelled
        ? "the check was interrupted \(count), and goes on when it is run again" : "the check ended \(count)"
    }
    return status != .ok && totals.areAllProved ? "one of the sources has no files" : nil
  }

  /// Returns the error that ended the check early; nil: none did.
  private func check(_ walk: PushWalk, _ report: CheckReport, _ counters: PushCounters) async -> UploadError? {
    let push = options.push
    for notice in push.notices { report.notice(notice) }
    do throws(UploadError) {
      let transport = SocketTransport(try push.connection.transportOptions(at: push.pace))
      let journal = try await openJournal(push.journal, report.notice)
      let outage = OutageMonitor(push.destination.endpoint, report, counters)
      outage.start()
      defer { outage.stop() }
      outage.discovering()
      let reached = try await Reached(
        push.destination, push.connection, checksum: nil, form: push.form, checks: true, telling: outage,
        over: transport)
      outage.answered()
      let run = try await PushRun(push, reached, transport, journal, report, counters, outage, isCheck: true)
      report.began(at: run.destination.endpoint.description, speaking: run.destination.uploadProtocol.name)
      let check = ContentCheck(
        run.uploader, journal, downloads: options.downloads, isAnew: options.isAnew,
        identities: options.identities)
      let opener = try SourceOpener(push.connection, jobs: push.pace.jobs, report, counters, outage.sources)
      let feed = PushFeed(run, .byName, edits: push.edits, overwrites: false, omitsMetadata: true, names: nil)
      if !push.seal.hasNames, try await run.hasSealedNames() { report.noteSealedNames() }
      do throws(UploadError) {
        try await check.begin()
        let extra = ExtraFiles(options)
        try await CheckPass(check: check).run(walk, opener, feed) { files in
          for file in files { extra.note(file) }
          report.checked(files)
        }
        try await extra.tell(check, report)
        if report.totals.areAllProved {
          let indexed = ClaimedNames()
          try await run.checkNames(of: report.totals.files, options.identities) { path in
            extra.isNoted(path) && !indexed.isTaken(path, by: path) && indexed.take(path, for: path) ? 1 : 0
          }
        }
        if run.destination.endpoint.isOnThisComputer {
          report.notice(
            "\(options.place) is on this computer, and a check cannot tell whether it shows these very files: make sure "
              + "that its folder is another one before you delete any")
        }
      } catch {
        throw await completed(error, journal)
      }
      await journal.close()
      return nil
    } catch {
      report.tell(error)
      return error
    }
  }
}

extension HTTPURL {
  /// Whether the host is an address of this computer. Other names than `localhost` are not resolved.
  fileprivate var isOnThisComputer: Bool {
    if isLoopback { return true }
    guard let address = IPAddress(host) else { return false }
    return LocalAddress.all().contains { IPAddress($0.text) == address }
  }
}
