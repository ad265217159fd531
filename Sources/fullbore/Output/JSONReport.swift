import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

/// Output for programs: one JSON object per line, as `docs/push-events.schema.json` describes it. `event` is its type; sizes
/// are in bytes and times in seconds.
///
/// `path` is the path at the destination. If it is not UTF-8, `path_bytes` contains it in hexadecimal.
final class JSONReport: PushReport {
  private let output: Console
  private let options: OutputOptions
  private let ticker: Ticker
  /// The URL of the only destination that this report is for; nil: it is for all.
  private let destination: String?

  init(
    _ output: Console, _ counters: PushCounters, _ options: OutputOptions, of destinations: [ReportedDestination] = []
  ) {
    self.output = output
    self.options = options
    destination = nil
    let began = ContinuousClock.now
    let totals = destinations.isEmpty ? [(url: nil, counters: counters)] : destinations.map { ($0.url, $0.counters) }
    // A watch may be idle for days; idle progress is reported only once.
    let wereIdle = Mutex(totals.map { _ in false })
    ticker = Ticker {
      for (index, (url, counters)) in totals.enumerated() {
        let isIdle = counters.isIdle
        let wasIdle = wereIdle.withLock { were in
          defer { were[index] = isIdle }
          return were[index]
        }
        if wasIdle && isIdle { continue }
        output.write(Self.progress(counters, began.duration(to: .now)).timed(at: url) + "\n")
      }
      output.flush()
    }
  }

  /// For what concerns one destination.
  init(of destination: ReportedDestination, in whole: JSONReport) {
    (output, options, ticker) = (whole.output, whole.options, whole.ticker)
    self.destination = destination.url
  }

  func about(_ destination: ReportedDestination) -> any PushReport { JSONReport(of: destination, in: self) }

  func began(at endpoint: String, speaking protocolName: String) {
    var line = JSONLine("destination")
    line.add("endpoint", endpoint)
    line.add("protocol", protocolName)
    write(line)
  }

  func started(_ file: PushedFile) { write(JSONLine("start", file)) }

  func finished(_ file: PushedFile, how: Finish) {
    var line = JSONLine("done", file)
    switch how {
    case .sent(let bytes, let start):
      line.add("how", "sent")
      line.add("sent", bytes)
      line.add("resumed_from", start)
    case .doneBefore(let evidence):
      line.add("how", "done_before")
      line.add("known_by", "\(evidence)")
    case .alreadyThere: line.add("how", "already_there")
    }
    write(line)
  }

  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?) {
    var line = JSONLine("failed", file)
    line.add("message", advised(message, advice))
    line.add("kind", error?.kind ?? "busy")
    if let status = error?.status { line.add("status", status) }
    write(line)
  }

  func failed(_ path: BytePath, _ message: String) {
    var line = JSONLine("failed")
    line.add(path: path)
    line.add("message", message)
    line.add("kind", "source")
    write(line)
  }

  func dropped(_ file: PushedFile) {}

  func leftOut(_ path: BytePath, reason: String) {
    var line = JSONLine("left_out")
    line.add(path: path)
    line.add("message", reason)
    write(line)
  }

  func removed(_ path: BytePath) {
    var line = JSONLine("removed")
    line.add(path: path)
    write(line)
  }

  func chosen(_ path: BytePath, _ what: String, length: Int64?) {
    var line = JSONLine("chosen")
    line.add(path: path)
    if let length { line.add("length", length) } else { line.add("source", what) }
    write(line)
  }

  func notice(_ text: String) {
    var line = JSONLine("notice")
    line.add("message", text)
    write(line)
  }

  func outage(_ outage: Outage) {
    var line = JSONLine(outage.isOver ? "outage_over" : "outage")
    line.add("host", outage.host)
    line.add("since", outage.since)
    line.add("message", outage.text)
    if let retry = outage.retry { line.add("retry_in", seconds: retry) }
    write(line)
  }

  func ended(_ text: String, _ error: UploadError?) {
    var line = JSONLine("error")
    line.add("message", text)
    if let error { line.add("kind", error.kind) }
    if let status = error?.status { line.add("status", status) }
    write(line)
  }

  func summary(_ summary: PushSummary) {
    ticker.stop()
    var line = JSONLine("summary")
    line.add("files_found", summary.filesFound)
    line.add("bytes_found", summary.bytesFound)
    line.add("files_sent", summary.filesSent)
    line.add("bytes_sent", summary.bytesSent)
    line.add("bytes_acknowledged", summary.bytesAcknowledged)
    line.add("done_before", summary.filesDoneBefore)
    line.add("already_there", summary.filesAlreadyThere)
    line.add("left_out", summary.filesLeftOut)
    line.add("hidden", summary.filesHidden)
    line.add("failed", summary.filesFailed)
    line.add("skipped", summary.filesSkipped)
    line.add("renamed", summary.filesRenamed)
    line.add("not_tried", summary.isDryRun ? 0 : summary.filesNotTried)
    line.add("seconds", seconds: summary.elapsed)
    line.add("bytes_per_second", Int64(clamped: summary.bytesPerSecond))
    line.add("interrupted", summary.isInterrupted)
    line.add("dry_run", summary.isDryRun)
    line.add("exit_status", summary.exit.rawValue)
    if !summary.parts.isEmpty {
      line.add("destinations", objects: summary.parts.map { Self.sums(of: $0.summary, at: $0.url) })
    }
    if let error = summary.error { line.add("error", error) }
    write(line)
    output.flush()
  }

  /// One of several destinations in the summary.
  private static func sums(of summary: PushSummary, at url: String) -> JSONLine {
    var line = JSONLine()
    line.add("destination", url)
    line.add("files_sent", summary.filesSent)
    line.add("bytes_sent", summary.bytesSent)
    line.add("bytes_acknowledged", summary.bytesAcknowledged)
    line.add("done_before", summary.filesDoneBefore)
    line.add("already_there", summary.filesAlreadyThere)
    line.add("failed", summary.filesFailed)
    line.add("skipped", summary.filesSkipped)
    line.add("renamed", summary.filesRenamed)
    line.add("not_tried", summary.isDryRun ? 0 : summary.filesNotTried)
    line.add("exit_status", summary.exit.rawValue)
    if let error = summary.error { line.add("error", error) }
    return line
  }

  private func write(_ line: JSONLine) { output.write(line.timed(at: destination) + "\n") }

  private static func progress(_ counters: PushCounters, _ elapsed: Duration) -> JSONLine {
    var line = JSONLine("progress")
    line.add("files_found", counters.filesFound.load(ordering: .relaxed))
    line.add("bytes_found", counters.bytesFound.load(ordering: .relaxed))
    line.add("listed", counters.isListed.load(ordering: .relaxed))
    line.add("files_sent", counters.filesSent.load(ordering: .relaxed))
    line.add("failed", counters.filesFailed.load(ordering: .relaxed))
    line.add("sent", counters.bytes.sent)
    line.add("acknowledged", counters.bytes.acknowledged)
    line.add("seconds", seconds: elapsed)
    return line
  }
}

extension UploadError {
  /// What the error is about, in a word of the JSON output.
  var kind: String {
    switch side {
    case .source: "source"
    case .destination: (cause as? TransportError).map { "\($0.code)" } ?? "destination"
    case .file: "file"
    case .journal: "journal"
    case .cancelled: "cancelled"
    }
  }
}
