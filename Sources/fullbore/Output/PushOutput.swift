import BlobUpload
import Blobs

/// The counters and reports of a push or a watch: of the whole, and of each destination.
struct PushOutput: Sendable {
  let report: any PushReport
  let counters: PushCounters
  /// With one destination, its report and its counters are those of the whole.
  let destinations: [DestinationOutput]
  private let began = ContinuousClock.now

  init(_ options: PushOptions) {
    if options.also.isEmpty {
      counters = PushCounters()
      report = pushReport(options.output, counters)
      destinations = [DestinationOutput(options: options, report: report, counters: counters)]
      return
    }
    let parts = options.all.map {
      ReportedDestination(title: shown($0.title), url: "\($0.destination.endpoint)", counters: PushCounters())
    }
    counters = PushCounters(of: parts.map(\.counters))
    let whole = pushReport(options.output, counters, of: parts)
    report = whole
    destinations = zip(options.all, parts).map { options, part in
      DestinationOutput(options: options, report: whole.about(part), counters: part.counters)
    }
  }

  /// Writes the summary, and returns the exit status.
  /// - `ended`: the errors that ended the destinations early.
  /// - `watches`: what a watch has left at each destination; empty: it is a push.
  /// - `failed`: something failed that concerns no single file.
  func end(
    _ ended: [UploadError?], of watches: [WatchEnd] = [], failed: Bool = false, isDryRun: Bool = false
  ) -> ExitStatus {
    let elapsed = began.duration(to: .now)
    var each = zip(destinations, ended).map { output, ended in
      output.counters.summary(
        elapsed: elapsed, exit: ExitStatus(ended, output.counters), ended: ended, isDryRun: isDryRun)
    }
    for (index, end) in watches.enumerated() { each[index].watch = end }
    let status = ExitStatus.worst(of: each.map(\.exit) + (failed ? [.failed] : []))
    let error = ended.compactMap(\.self).first { $0.side != .cancelled } ?? ended.compactMap(\.self).first
    var whole = counters.summary(elapsed: elapsed, exit: status, ended: error, isDryRun: isDryRun)
    whole.watch = watches.first
    let parts =
      destinations.count == 1
      ? []
      : zip(destinations, each).map { output, summary in
        PushSummary.Part(
          title: shown(output.options.title), url: "\(output.options.destination.endpoint)", summary: summary)
      }
    report.summary(whole.adding(parts))
    return status
  }
}

/// The counters and the report of one destination.
struct DestinationOutput: Sendable {
  let options: PushOptions
  let report: any PushReport
  let counters: PushCounters
}
