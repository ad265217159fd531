import BlobHTTP
import BlobSQLite
import BlobUpload
import Blobs
import Glibc
import Synchronization

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
      let remote = entries.filter { URLSource.isURL($0.intent.source) }
      let rows = Mutex(entries.filter { DatabaseSource.isDatabase($0.intent.source) }[...])
      let walk = ResumeWalk(
        entries.filter { !URLSource.isURL($0.intent.source) && !DatabaseSource.isDatabase($0.intent.source) }, report,
        counters)
      let databases = DatabaseWalk([], report, counters)
      let urls = Mutex(urls(of: remote, report, counters)[...])
      let reading = try connection.readingTransport(jobs: nil)
      return await run.run { [run] () async throws(UploadError) in
        while let (source, arrival) = urls.withLock({ $0.popFirst() }) {
          let item = await run.item(source, as: arrival, over: reading, overwrites: kept.overwrite, nil)
          if let item { return [item] }
        }
        while let entry = rows.withLock({ $0.popFirst() }) {
          guard let source = DatabaseSource(kept: entry.intent.source), let row = source.row else { continue }
          let items = await databases.items(
            [SQLiteBlobTable.Row(number: row, name: "")], of: source.table, as: entry.intent.path, in: run,
            overwrites: kept.overwrite, nil)
          if !items.isEmpty { return items }
        }
        return await walk.next()?.map { run.item($0.path, $0.stamp, as: $0.relative, overwrites: kept.overwrite, nil) }
      }
    } catch {
      report.tell(error)
      return error
    }
  }
}

/// The URLs of journal entries, as far as they are known.
private func urls(
  of entries: [JournalEntry], _ report: any PushReport, _ counters: PushCounters
) -> [(source: URLSource, arrival: BytePath)] {
  entries.compactMap { entry in
    if let source = URLSource(kept: entry.intent.source) { return (source, entry.intent.path) }
    counters.found(length: nil)
    counters.failed(length: nil)
    report.failed(entry.intent.source, "the query of its URL is not kept, since it may be secret: run the push again")
    return nil
  }
}

/// The files of journal entries, as they are now.
private actor ResumeWalk {
  private var entries: ArraySlice<JournalEntry>
  private let report: any PushReport
  private let counters: PushCounters

  init(_ entries: [JournalEntry], _ report: any PushReport, _ counters: PushCounters) {
    self.entries = entries[...]
    self.report = report
    self.counters = counters
  }

  func next() async -> [TreeItem]? {
    while !entries.isEmpty {
      let batch = Array(entries.prefix(PushWalk.batch))
      entries = entries.dropFirst(PushWalk.batch)
      let found = await BlockingPool.shared.run { batch.map { ($0, stamp(of: $0.intent.source)) } }
      let items = found.compactMap { entry, stamp in item(entry, stamp) }
      if !items.isEmpty { return items }
    }
    counters.isListed.store(true, ordering: .relaxed)
    return nil
  }

  private func item(_ entry: JournalEntry, _ stamp: FileStamp?) -> TreeItem? {
    counters.found(length: stamp?.size)
    if entry.intent.source == PushRun.standardInput {
      counters.failed(length: nil)
      report.failed(
        entry.intent.path,
        "it came through standard input, which cannot be read again: push it anew, or end it with "
          + "'fullbore abort \(entry.id)'")
      return nil
    }
    if let stamp { return TreeItem(path: entry.intent.source, relative: entry.intent.path, stamp: stamp) }
    counters.failed(length: nil)
    report.failed(entry.intent.source, "it is not there any more")
    return nil
  }
}

private func stamp(of path: BytePath) -> FileStamp? {
  var status = stat()
  return path.status(&status) == 0 ? FileStamp(status, at: path) : nil
}
