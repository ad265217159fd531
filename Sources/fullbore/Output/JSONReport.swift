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
    if let status = outage.status { line.add("status", status) }
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
    line.add(sums: summary, ofPart: false)
    write(line)
    output.flush()
  }

  private func write(_ line: JSONLine) { output.write(line.timed(at: destination) + "\n") }

  private static func progress(_ counters: PushCounters, _ elapsed: Duration) -> JSONLine {
    var line = JSONLine("progress")
    let files = counters.files
    line.add("files_found", files.found)
    line.add("bytes_found", files.foundBytes)
    line.add("listed", counters.isListed.load(ordering: .relaxed))
    line.add("files_sent", files.sent)
    line.add("failed", files.failed)
    line.add("sent", counters.bytes.sent)
    line.add("acknowledged", counters.bytes.acknowledged)
    line.add("seconds", seconds: elapsed)
    return line
  }
}

extension JSONLine {
  /// Adds the numbers of a whole push, or of one of several destinations in its summary, which has fewer.
  fileprivate mutating func add(sums summary: PushSummary, ofPart isPart: Bool) {
    let files = summary.files
    if !isPart {
      add("files_found", files.found)
      add("bytes_found", files.foundBytes)
    }
    add("files_sent", files.sent)
    add("bytes_sent", summary.bytesSent)
    add("bytes_acknowledged", summary.bytesAcknowledged)
    add("done_before", files.doneBefore.all)
    add("already_there", files.alreadyThere)
    if !isPart {
      add("left_out", files.leftOut)
      add("hidden", files.hidden)
    }
    add("failed", files.failed)
    add("skipped", files.skipped)
    add("renamed", files.renamed)
    add("not_tried", summary.isDryRun ? 0 : summary.filesNotTried)
    if !isPart {
      add("seconds", seconds: summary.elapsed)
      add("bytes_per_second", Int64(clamped: summary.bytesPerSecond))
      add("interrupted", summary.isInterrupted)
      add("dry_run", summary.isDryRun)
    }
    add("exit_status", summary.exit.rawValue)
    if !summary.parts.isEmpty {
      let parts = summary.parts.map { part in
        var line = JSONLine()
        line.add("destination", part.url)
        line.add(sums: part.summary, ofPart: true)
        return line
      }
      add("destinations", objects: parts)
    }
    if let error = summary.error { add("error", error) }
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
