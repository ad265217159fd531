import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

struct PushCommand: Command {
  static let declaration = CommandDeclaration(
    name: "push", synopsis: "push SOURCE... DESTINATION",
    summary: "upload files and folders; resumes by itself when run again",
    options: PushOptions.declared, notes: PushOptions.notes)

  let options: PushOptions

  init(_ arguments: Arguments) throws(UsageError) { options = try PushOptions(arguments) }

  func run() async -> ExitStatus {
    let counters = PushCounters()
    let report = pushReport(options.output, counters)
    let began = ContinuousClock.now
    let walk = PushWalk(options, report, counters)
    var ended: UploadError?
    if options.isDryRun {
      await walk.list()
      await DatabaseWalk(options.databases, report, counters).list(as: options.nameOfRow)
    } else {
      ended = await interruptible { await push(walk, report, counters) }
    }
    report.summary(
      counters.summary(
        elapsed: began.duration(to: .now), isInterrupted: ended?.side == .cancelled, isDryRun: options.isDryRun))
    return ExitStatus(ended, counters)
  }

  private func push(_ walk: PushWalk, _ report: any PushReport, _ counters: PushCounters) async -> UploadError? {
    do throws(UploadError) {
      let transport = CurlTransport(try options.connection.transportOptions(lanes: options.jobs))
      let journal = try await openJournal(options.journal, report.notice)
      let reached = try await Reached(
        options.destination, options.connection, checksum: options.checksum, form: options.form, over: transport)
      let destination = reached.destination
      if options.output.isVerbose { report.notice("\(destination.endpoint): speaks \(destination.dialect.name)") }
      let run = try await PushRun(options, reached, transport, journal, report, counters)
      let limiter = options.bytesPerSecond.map { RateLimiter(bytesPerSecond: $0) }
      let standardInput = options.readsStandardInput ? walk.nameOfStandardInput : nil
      let isRead = Atomic(false)
      let databases = DatabaseWalk(options.databases, report, counters)
      let reading = try options.connection.readingTransport(jobs: options.jobs)
      let ended = await run.run { [run, options] () async throws(UploadError) in
        if let name = standardInput {
          if isRead.exchange(true, ordering: .relaxed) { return nil }
          counters.found(length: nil)
          counters.isListed.store(true, ordering: .relaxed)
          return [run.standardInput(as: name, overwrites: options.overwrites, limiter)]
        }
        while let (source, arrival) = walk.takeURL() {
          let item = await run.item(
            source, as: arrival, over: reading, overwrites: options.overwrites, limiter)
          if let item { return [item] }
        }
        while let (table, rows) = await databases.next() {
          let items = await databases.items(
            rows, of: table, as: options.nameOfRow, in: run, overwrites: options.overwrites, limiter)
          if !items.isEmpty { return items }
        }
        return await walk.next()?.map {
          run.item($0.path, $0.stamp, as: $0.relative, overwrites: options.overwrites, limiter)
        }
      }
      await journal.close()
      return ended
    } catch {
      report.tell(error)
      return error
    }
  }
}

/// The walk over the sources, as batches of files with the names they arrive under.
final class PushWalk: Sendable {
  static let batch = 128
  private let tree: FileTree
  private let options: PushOptions
  private let report: any PushReport
  private let counters: PushCounters
  private let urls: Mutex<ArraySlice<URLSource>>

  init(_ options: PushOptions, _ report: any PushReport, _ counters: PushCounters) {
    tree = FileTree(options.sources, options.tree)
    urls = Mutex(options.urls[...])
    self.options = options
    self.report = report
    self.counters = counters
  }

  /// The next of the URLs among the sources, with the name under which it arrives; nil at their end.
  func takeURL() -> (source: URLSource, arrival: BytePath)? {
    guard let source = urls.withLock({ $0.popFirst() }) else { return nil }
    let endpoint = options.destination.endpoint
    let name = options.destination.isFolder ? options.name : BytePath(endpoint.lastComponent)
    return (source, name ?? source.name)
  }

  /// The next files; nil at the end. What cannot be sent is reported.
  func next() async -> [TreeItem]? {
    while true {
      // Where a file goes may be asked of its bytes.
      let items = await BlockingPool.shared.run { [self] in
        let events = tree.next(max: Self.batch)
        return events.isEmpty ? nil : events.compactMap(file)
      }
      guard let items else {
        counters.isListed.store(true, ordering: .relaxed)
        return nil
      }
      if !items.isEmpty { return items }
    }
  }

  /// What it arrives as.
  var nameOfStandardInput: BytePath {
    options.name ?? BytePath(options.destination.endpoint.lastComponent)
  }

  /// Names what would be sent.
  func list() async {
    if options.readsStandardInput {
      counters.found(length: nil)
      Console.output.write("\(shown(nameOfStandardInput))  standard input\n")
      return
    }
    while let (source, arrival) = takeURL() {
      Console.output.write("\(shown(arrival))  \(source.url)\n")
    }
    while let items = await next() {
      for item in items {
        Console.output.write("\(shown(item.relative))  \(Quantity.text(bytes: item.stamp.size))\n")
      }
    }
  }

  private func file(_ event: TreeEvent) -> TreeItem? {
    switch event {
    case .file(let item):
      switch options.placing(of: item) {
      case .at(let arrival):
        counters.found(length: item.stamp.size)
        return TreeItem(path: item.path, relative: arrival, stamp: item.stamp)
      case .leftOut(let reason):
        counters.filesLeftOut.add(1, ordering: .relaxed)
        report.leftOut(item.path, reason: reason)
      }
    case .skipped(let path, let reason):
      counters.filesLeftOut.add(1, ordering: .relaxed)
      report.leftOut(path, reason: reason)
    case .failed(let path, let message):
      counters.filesFound.add(1, ordering: .relaxed)
      counters.failed(length: 0)
      report.failed(path, message)
    }
    return nil
  }
}

extension PushOptions {
  /// `--name`, or the URL's last part where it does not end in a slash, takes the place of a single source's name.
  func arrival(of relative: BytePath) -> BytePath {
    let endpoint = destination.endpoint
    guard let name = destination.isFolder ? self.name : BytePath(endpoint.lastComponent) else {
      return relative
    }
    let source = sources[0]
    if source.hasTrailingSlash || source.name == "." || source.name == ".." { return name.appending(relative) }
    return relative.components.dropFirst().reduce(name) { $0.appending($1) }
  }
}
