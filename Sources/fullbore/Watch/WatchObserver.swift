import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// Reports the results of uploads, and tells the feed which files to offer again. In a watch, a file that changes while
/// it is read is not a failure.
final class WatchObserver: UploadObserver {
  /// The delay if another process is sending the file.
  private static let busy = Duration.seconds(10)
  /// The delay after a failure of the server that was not caused by the file.
  private static let later = Duration.seconds(300)

  private let pushed: PushObserver
  private let feed: WatchFeed
  private let report: any PushReport
  private let counters: PushCounters
  private let options: WatchOptions
  private let arrived: @Sendable (ArrivedFile) -> Void

  /// `arrived` gets each file that this watch has sent, and those that it finds at its begin and an earlier one has sent.
  init(
    _ feed: WatchFeed, _ report: any PushReport, _ counters: PushCounters, _ options: WatchOptions,
    _ outage: OutageMonitor?, _ arrived: @escaping @Sendable (ArrivedFile) -> Void
  ) {
    self.arrived = arrived
    pushed = PushObserver(
      report: report, counters: counters, skips: options.push.onConflict == .skip, outage: outage)
    self.feed = feed
    self.report = report
    self.counters = counters
    self.options = options
  }

  func started(_ item: UploadItem, _ progress: UploadProgress) { pushed.started(item, progress) }

  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    // The run has ended because of another file. This one stays under way, so that `WatchFeed.restart` counts it no more.
    if case .failed(let error) = outcome, error.side == .cancelled { return pushed.ended(item, progress, outcome) }
    let file = feed.inbox.end(item)
    switch outcome {
    case .sent:
      pushed.ended(item, progress, outcome)
      arrived(ArrivedFile(path: item.identity, validator: item.info.validator))
    case .doneBefore where file?.isFirst == true:
      pushed.ended(item, progress, outcome)
      // The earlier watch may have ended before the program was run.
      arrived(ArrivedFile(path: item.identity, validator: item.info.validator))
    case .doneBefore: withdraw(item, progress)
    case .busy:
      again(file, after: Self.busy)
      withdraw(item, progress)
    case .failed(let error) where error.isOfMovingSource:
      if error.isOfFileDeletedOnTheWay {
        report.notice(error.message)
      } else if options.push.output.isVerbose {
        report.notice("\(error.message): it is sent once it rests")
      }
      if error.isOfGoneFile { feed.inbox.seekDeleted() }
      again(file, after: options.settle)
      withdraw(item, progress)
    // The end of the run reports this error, and the next run offers its files again.
    case .failed(let error) where error.side == .destination: withdraw(item, progress)
    case .failed(let error):
      if error.isTemporary { again(file, after: Self.later) } else if error.isOfFile { feed.inbox.refuse(item) }
      pushed.ended(item, progress, outcome)
    }
  }

  private func again(_ file: WatchInbox.Handed?, after wait: Duration) {
    guard let file else { return }
    feed.inbox.again(file, after: wait)
    feed.wake()
  }

  private func withdraw(_ item: UploadItem, _ progress: UploadProgress?) {
    counters.withdrawn(length: item.info.length)
    report.dropped(pushed.file(item, progress ?? UploadProgress()))
  }
}

extension UploadError {
  /// The file is not the one that was found, or has changed since, so it is checked again.
  fileprivate var isOfMovingSource: Bool {
    guard side == .source, let error = cause as? BlobError else { return false }
    // EAGAIN: another program holds a lease on the file.
    return [.changed, .truncated, .notFound, .invalidated].contains(error.code) || error.errno == EAGAIN
  }

  fileprivate var isOfFile: Bool { side == .file || side == .source }

  /// The failure was not caused by the file, so a later attempt may succeed.
  var isTemporary: Bool {
    if let status { return status >= 500 && status != 501 && status != 505 || [408, 423, 425, 429].contains(status) }
    guard let code = (cause as? TransportError)?.code else { return false }
    return [.resolve, .connect, .broken, .timeout].contains(code)
  }
}
