import BlobUpload
import Blobs
import Synchronization

/// Presents `unseal` to the user: a line for each restored file, failures, and a summary. With `--json` one object a line,
/// as `docs/unseal-events.schema.json` describes it.
final class UnsealReport: OutageReport {
  private struct Totals {
    var counts: [FileRestore.Outcome: Int] = [:]
    var failed = 0
  }
  private let options: OutputOptions
  let counters = PushCounters(readsOnly: true)
  private let display: ProgressDisplay
  private let state = Mutex(Totals())
  private let began = ContinuousClock.now
  private let advice = GivenAdvice()

  init(_ options: OutputOptions) {
    self.options = options
    display = ProgressDisplay(counters, options)
  }

  private var elapsed: Duration { began.duration(to: .now) }
  var hasFailed: Bool { state.withLock { $0.failed > 0 } }
  var hasFound: Bool { counters.files.found > 0 }

  func found(_ count: Int) { counters.count { $0.found += count } }
  func listed() { counters.listed() }
  func noteRead(_ count: Int) { counters.comparedBytes.add(Int64(count), ordering: .relaxed) }

  /// `path`: of the sealed file. `named`: the path that it had before its name was sealed.
  func ended(_ path: BytePath, named: BytePath? = nil, _ outcome: FileRestore.Outcome) {
    state.withLock { $0.counts[outcome, default: 0] += 1 }
    counters.compared(length: nil, isRead: false)
    let target = outcome == .copied ? path : FileRestore.path(of: named ?? path)
    if options.isJSON {
      var line = JSONLine("done")
      line.add(path: target)
      line.add("source", path.description)
      line.add("how", outcome.word)
      return display.result(line.timed())
    }
    if options.isQuiet || outcome == .same && !options.isVerbose { return }
    display.result("\(shown(target))  \(outcome.text)")
  }

  /// A file or folder that is not restored. `advice`: what to do, which is said once.
  func failed(_ path: BytePath, _ message: String, advice: String? = nil) {
    state.withLock { $0.failed += 1 }
    counters.failed(length: nil)
    if options.isJSON {
      var line = JSONLine("failed")
      line.add("source", path.description)
      line.add("message", advised(message, advice))
      return display.result(line.timed())
    }
    display.message("\(shown(path)): \(shown(self.advice.text(message, advice)))")
  }

  func notice(_ text: String) { if !options.isQuiet { say("notice", text) } }

  func outage(_ outage: Outage) { notice(outage.text) }

  /// The command ended early.
  func ended(_ error: UploadError) { say("error", advice.text(error.message, error.readingAdvice)) }

  private func say(_ event: String, _ text: String) {
    if options.isJSON {
      var line = JSONLine(event)
      line.add("message", text)
      return display.result(line.timed())
    }
    display.message("\(shown(text))")
  }

  /// The last call.
  func finish(_ exit: ExitStatus) {
    let totals = state.withLock { $0 }
    func count(_ outcome: FileRestore.Outcome) -> Int { totals.counts[outcome] ?? 0 }
    let bytes = counters.moved
    if options.isJSON {
      var line = JSONLine("summary")
      line.add("files", counters.files.found)
      for outcome in [FileRestore.Outcome.restored, .copied, .same] { line.add(outcome.word, count(outcome)) }
      line.add("failed", totals.failed)
      line.add("bytes", bytes)
      line.add("seconds", seconds: elapsed)
      line.add("interrupted", exit == .interrupted)
      line.add("exit_status", exit.rawValue)
      return display.end([line.timed()])
    }
    if options.isQuiet { return display.end([]) }
    let rate = Double(bytes) / max(0.001, Quantity.seconds(elapsed))
    var parts = [
      "\(Quantity.plural(count(.restored), "file")) restored, \(Quantity.text(bytes: bytes)) read in "
        + "\(Quantity.text(elapsed)) (\(Quantity.text(bytesPerSecond: rate)))"
    ]
    if count(.copied) > 0 { parts.append("\(Quantity.grouped(count(.copied))) copied, not sealed") }
    if count(.same) > 0 { parts.append("\(Quantity.grouped(count(.same))) there already") }
    if totals.failed > 0 { parts.append("\(Quantity.grouped(totals.failed)) failed") }
    if exit == .interrupted { parts.append("interrupted: run it again to go on") }
    display.end([parts.joined(separator: "; ")])
  }
}

extension FileRestore.Outcome {
  /// The outcome in the JSON output.
  fileprivate var word: String {
    switch self {
    case .restored: "restored"
    case .copied: "copied"
    case .same: "there"
    }
  }

  fileprivate var text: String {
    switch self {
    case .restored: "restored"
    case .copied: "copied, not sealed"
    case .same: "there already, with the same bytes"
    }
  }
}
