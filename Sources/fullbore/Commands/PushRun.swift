import BlobClient
import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs
import Platform
import Synchronization

/// The common part of `push` and `resume`: one destination, a feed of items, a report, an exit status.
struct PushRun: Sendable {
  let destination: UploadDestination
  let transport: SocketTransport
  let journal: Journal
  let destinationID: Int64
  var report: any PushReport
  var counters: PushCounters
  var settings = SendSettings()
  /// The only source has the name that the user has given.
  var hasChosenName = false
  /// The run finishes earlier pushes.
  var isResume = false
  /// Remembers which files arrived under numbered names; nil: none does.
  var renamed: RenamedFiles?
  /// Takes down the files for hash lists; nil: no lists are written.
  var listed: ListedFolders?
  /// Informed about failed attempts; nil: nothing is.
  var outage: OutageMonitor?

  /// Sends all items that `next` returns. Returns the error that ended the run early, if any; the error was already
  /// reported. `feed`: gives files other names, if the push has that option.
  func run(
    _ next: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?,
    renaming feed: PushFeed? = nil
  ) async -> UploadError? {
    let observer = PushObserver(
      report: report, counters: counters, skips: settings.onConflict == .skip, isResume: isResume, renamed: renamed,
      listed: listed, outage: outage)
    let ended = await send(next, observer, renaming: feed)
    await renamed?.tell(report)
    guard let error = ended, !error.isOfLostClaims else { return ended }
    if observer.hasTold(error) {
      report.notice("stopped: nothing else would succeed at \(destination.endpoint) either")
    } else {
      report.tell(error)
    }
    return error
  }

  var uploader: Uploader {
    var uploader = Uploader(destination, transport: transport, journal: journal)
    settings.apply(to: &uploader)
    uploader.compared = { [counters] count in counters.comparedBytes.addClamped(Int64(count)) }
    uploader.notice = { [report] text in report.notice(text) }
    uploader.retrying = outage?.noteRetry
    return uploader
  }

  /// Like `run`, but reports items to `observer`, and does not report the returned error.
  func send(
    _ next: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?, _ observer: some UploadObserver,
    renaming feed: PushFeed? = nil
  ) async -> UploadError? {
    report.began(at: destination.endpoint.description, speaking: destination.uploadProtocol.name)
    var queue = UploadQueue(uploader, journal: journal, destinationID: destinationID)
    queue.totals = counters.bytes
    settings.apply(to: &queue, renaming: feed)
    queue.digest = listed?.options.format.algorithm
    if settings.waitsForOthers {
      queue.waiting = { [report, counters] pid in
        // The same file may have been found twice.
        if pid == getpid() { return }
        counters.waitsForOthers.store(true, ordering: .relaxed)
        report.notice("process \(pid) is sending some of these files just now: waiting until they are there")
      }
    }
    // A walk that is cancelled ends like one that has found everything.
    let orInterrupted = { @Sendable () async throws(UploadError) -> [UploadItem]? in
      let items = try await next()
      if items == nil, Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
      return items
    }
    do {
      try await queue.run(orInterrupted, observer, besides: indexes(verifies: settings.verifies))
      return nil
    } catch {
      return await completed(error, journal)
    }
  }
}

extension PushRun {
  /// A run with the options of `push` or `watch`, to a destination that has responded.
  init(
    _ options: PushOptions, _ reached: Reached, _ transport: SocketTransport, _ journal: Journal,
    _ report: any PushReport, _ counters: PushCounters, _ outage: OutageMonitor?, waitsForOthers: Bool = true,
    isCheck: Bool = false
  ) async throws(UploadError) {
    var destination = reached.destination
    destination.sealing = try await options.seal.sealing(
      at: destination, transport, journal, report, isCheck: isCheck)
    var kept = options.connection.journaled(
      destination, overwrite: options.overwrites, checksum: options.checksum, form: options.form,
      s3: reached.s3, omitsTimes: options.omitsTimes, verifies: options.verifies, renames: options.onConflict == .rename
    )
    kept.seal = options.seal.journaled
    self.init(
      destination: destination, transport: transport, journal: journal,
      destinationID: try await number(of: kept, in: journal), report: report, counters: counters)
    settings = SendSettings(options)
    hasChosenName = options.hasChosenName
    if options.onConflict == .rename { renamed = RenamedFiles() }
    self.outage = outage
    settings.waitsForOthers = waitsForOthers
  }
}

extension UploadQueue {
  /// As `run`. The indexes of sealed names are sent meanwhile, and once all files are there.
  fileprivate func run(
    _ feed: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?, _ observer: some UploadObserver,
    besides indexes: NamesIndexes?
  ) async throws(UploadError) {
    guard let indexes else { return try await run(feed, observer) }
    // The files do not wait for an index that cannot be asked for.
    var unsure: UploadError?
    if check { do throws(UploadError) { _ = try await indexes.unnamed() } catch { unsure = error } }
    // An earlier run may have left files without names. An index that cannot be sent here is sent again at the end, and
    // reported there.
    try? await indexes.send()
    let ended = await withTaskGroup(of: Void.self) { group -> UploadError? in
      defer { group.cancelAll() }
      group.addTask { await indexes.sendAgainAndAgain() }
      do throws(UploadError) { try await run(feed, observer) } catch { return error }
      return nil
    }
    if Task.isCancelled || ended?.side == .cancelled { await indexes.sendAtEnd() }
    if let ended { throw ended }
    try await indexes.send()
    if let unsure { throw unsure }
  }
}

/// Forwards the queue's events to the report.
final class PushObserver: UploadObserver {
  private let report: any PushReport
  private let counters: PushCounters
  /// Kinds of reported errors that end the push; there are few, because each ends it.
  private let reported = Mutex<Set<String>>([])
  /// The statuses with which files were rejected while the push continued. If all files are rejected, the push ends with
  /// the same error.
  private let toldRefusals = Mutex<Set<Int>>([])
  /// Files whose names are taken are left out, as the user wants it.
  private let skips: Bool
  private let isResume: Bool
  private let renamed: RenamedFiles?
  private let listed: ListedFolders?
  private let outage: OutageMonitor?

  init(
    report: any PushReport, counters: PushCounters, skips: Bool = false, isResume: Bool = false,
    renamed: RenamedFiles? = nil, listed: ListedFolders? = nil, outage: OutageMonitor? = nil
  ) {
    self.outage = outage
    self.listed = listed
    self.skips = skips
    self.isResume = isResume
    self.renamed = renamed
    self.report = report
    self.counters = counters
  }

  func hasTold(_ error: UploadError) -> Bool {
    if let status = error.status, toldRefusals.withLock({ $0.contains(status) }) { return true }
    return reported.withLock { $0.contains(Self.kind(of: error)) }
  }

  /// A common key for the errors of concurrent files when the destination rejects all of them: their messages differ
  /// only in the files' URLs.
  private static func kind(of error: UploadError) -> String {
    if let cause = error.cause as? RefusedKeys { return cause.code }
    if let status = error.status { return "status \(status)" }
    if let cause = error.cause as? TransportError { return "\(cause.code)" }
    return error.message
  }

  func started(_ item: UploadItem, _ progress: UploadProgress) {
    let file = file(item, progress)
    counters.large.began(file)
    report.started(file)
  }

  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    let file = file(item, progress ?? UploadProgress())
    counters.large.ended(file)
    renamed?.note(item, outcome)
    listed?.note(item, outcome)
    if case .failed(let error) = outcome { outage?.gaveUp(error) }
    switch outcome {
    case .sent where outcome.foundAll(of: file.length): finish(file, .alreadyThere)
    case .sent(_, let start):
      if item.isRenamed { counters.count { $0.renamed += 1 } }
      finish(file, .sent(bytes: (file.length ?? file.progress.acknowledged) - start, resumedFrom: start))
    case .doneBefore(let evidence): finish(file, .doneBefore(evidence))
    case .busy(let pid): fail(file, "process \(pid) is sending it just now; nothing was done here", nil)
    case .failed(let error) where error.side == .cancelled: report.dropped(file)
    case .failed(let error) where error.isOfLostClaims:
      counters.withdrawn(length: file.length)
      report.dropped(file)
    case .failed(let error) where skips && error.isNameTaken:
      counters.skipped(length: file.length)
      report.dropped(file)
      report.leftOut(file.path, reason: NameConflict.skipped)
    case .failed(let error) where error.side == .destination:
      // The error ends the push, so it is reported only once.
      if reported.withLock({ $0.insert(Self.kind(of: error)).inserted }) {
        fail(file, error.message, error, advice: advice(for: error, item))
      } else {
        report.dropped(file)
      }
    case .failed(let error):
      if let status = error.status { toldRefusals.withLock { _ = $0.insert(status) } }
      fail(file, error.message, error, advice: advice(for: error, item))
    }
  }

  private func finish(_ file: PushedFile, _ how: Finish) {
    counters.finished(file, how: how)
    report.finished(file, how: how)
  }

  private func advice(for error: UploadError, _ item: UploadItem) -> String? {
    error.advice(goesOn: item.info.validator != nil, isResume: isResume, isSealed: item.isSealed)
  }

  private func fail(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String? = nil) {
    counters.failed(length: file.length)
    report.failed(file, message, error, advice: advice)
  }

  func file(_ item: UploadItem, _ progress: UploadProgress) -> PushedFile {
    PushedFile(path: item.identity, relative: item.target.plainPath, length: item.info.length, progress: progress)
  }
}
