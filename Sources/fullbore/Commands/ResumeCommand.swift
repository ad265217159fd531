import BlobHTTP
import BlobUpload
import Blobs

struct ResumeCommand: Command {
  static let declaration = CommandDeclaration(
    name: "resume", synopsis: "resume",
    summary: "finish what earlier pushes left unfinished",
    options: ConnectionOptions.declared + [journalOption] + OutputOptions.declared)

  let connection: ConnectionOptions
  let journal: BytePath
  let output: OutputOptions

  init(_ arguments: Arguments) throws(UsageError) {
    connection = try ConnectionOptions(arguments)
    journal = try journalPath(arguments)
    output = try OutputOptions(arguments)
  }

  func run() async -> ExitStatus {
    let counters = PushCounters()
    let report = pushReport(output, counters)
    let began = ContinuousClock.now
    let ended = await interruptible { await resume(report, counters) }
    report.summary(counters.summary(elapsed: began.duration(to: .now), isInterrupted: ended?.side == .cancelled))
    return ExitStatus(ended, counters)
  }

  /// Each destination in turn; one that cannot be reached does not keep the others from being served.
  private func resume(_ report: any PushReport, _ counters: PushCounters) async -> UploadError? {
    var first: UploadError?
    do throws(UploadError) {
      let journal = try await openJournal(journal, report.notice)
      let entries = try await unfinished(in: journal)
      for (id, group) in Dictionary(grouping: entries, by: \.destinationID).sorted(by: { $0.key < $1.key }) {
        let ended = await resume(group, id, journal, report, counters)
        if let ended, ended.side == .cancelled || ended.side == .journal { return ended }
        first = first ?? ended
      }
      await journal.close()
    } catch {
      report.tell(error)
      return error
    }
    return first
  }

  private func resume(
    _ entries: [JournalEntry], _ id: Int64, _ journal: Journal, _ report: any PushReport, _ counters: PushCounters
  ) async -> UploadError? {
    do throws(UploadError) {
      let kept = entries[0].destination
      let connection = connection.completed(from: kept)
      let transport = CurlTransport(try connection.transportOptions(lanes: nil))
      let destination = try await Reached(kept, connection, over: transport).destination
      var run = PushRun(
        destination: destination, transport: transport, journal: journal, destinationID: id, report: report,
        counters: counters)
      run.connection = connection
      let feed = try PushFeed(run, .held(nil), overwrites: kept.overwrite, omitsTimes: kept.omitsTimes == true)
      let walk = ResumeWalk(entries, report, counters)
      return await run.run { () async throws(UploadError) in await feed.next(of: walk) }
    } catch {
      report.tell(error)
      return error
    }
  }
}
