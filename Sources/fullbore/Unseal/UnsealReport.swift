import BlobUpload
import Blobs
import Synchronization

/// Presents `unseal` to the user: a line for each restored file, failures, and a summary. With `--json` one object a line,
/// as `docs/unseal-events.schema.json` describes it.
final class UnsealReport: Sendable {
  private struct Totals {
    var found = 0
    var isListed = false
    var counts: [FileRestore.Outcome: Int] = [:]
    var failed = 0
    var speed = Speed()
    var hasProgressLine = false
    var nextProgress = ContinuousClock.now

    var settled: Int { failed + counts.values.reduce(0, +) }
  }
  private let options: OutputOptions
  private let output = Console.output
  private let errors = Console.error
  private let state = Mutex(Totals())
  private let read = Atomic<Int64>(0)
  private let began = ContinuousClock.now
  private let ticker = Mutex<Ticker?>(nil)
  private let advice = GivenAdvice()

  init(_ options: OutputOptions) {
    self.options = options
    ticker.withLock { $0 = Ticker { [weak self] in self?.tick() } }
  }

  private var elapsed: Duration { began.duration(to: .now) }
  var hasFailed: Bool { state.withLock { $0.failed > 0 } }
  var hasFound: Bool { state.withLock { $0.found > 0 } }

  func found(_ count: Int) { state.withLock { $0.found += count } }
  func listed() { state.withLock { $0.isListed = true } }
  func noteRead(_ count: Int) { read.add(Int64(count), ordering: .relaxed) }

  /// `path`: of the sealed file. `named`: the path that it had before its name was sealed.
  func ended(_ path: BytePath, named: BytePath? = nil, _ outcome: FileRestore.Outcome) {
    state.withLock { $0.counts[outcome, default: 0] += 1 }
    let target = outcome == .copied ? path : FileRestore.path(of: named ?? path)
    if options.isJSON {
      var line = JSONLine("done")
      line.add(path: target)
      line.add("source", path.description)
      line.add("how", outcome.word)
      return output.write(line.timed() + "\n")
    }
    if options.isQuiet || outcome == .same && !options.isVerbose { return }
    clearProgress()
    output.write("\(shown(target))  \(outcome.text)\n")
    if output.isTerminal { output.flush() }
  }

  /// A file or folder that is not restored. `advice`: what to do, which is said once.
  func failed(_ path: BytePath, _ message: String, advice: String? = nil) {
    state.withLock { $0.failed += 1 }
    if options.isJSON {
      var line = JSONLine("failed")
      line.add("source", path.description)
      line.add("message", advised(message, advice))
      return output.write(line.timed() + "\n")
    }
    clearProgress()
    errors.write("fullbore: \(shown(path)): \(shown(self.advice.text(message, advice)))\n")
  }

  func notice(_ text: String) { if !options.isQuiet { say("notice", text) } }

  /// The command ended early.
  func ended(_ error: UploadError) { say("error", advice.text(error.message, error.readingAdvice)) }

  private func say(_ event: String, _ text: String) {
    if options.isJSON {
      var line = JSONLine(event)
      line.add("message", text)
      return output.write(line.timed() + "\n")
    }
    clearProgress()
    errors.write("fullbore: \(shown(text))\n")
  }

  /// The last call.
  func finish(_ exit: ExitStatus) {
    ticker.withLock { $0 }?.stop()
    clearProgress()
    let totals = state.withLock { $0 }
    func count(_ outcome: FileRestore.Outcome) -> Int { totals.counts[outcome] ?? 0 }
    let bytes = read.load(ordering: .relaxed)
    if options.isJSON {
      var line = JSONLine("summary")
      line.add("files", totals.found)
      for outcome in [FileRestore.Outcome.restored, .copied, .same] { line.add(outcome.word, count(outcome)) }
      line.add("failed", totals.failed)
      line.add("bytes", bytes)
      line.add("seconds", seconds: elapsed)
      line.add("interrupted", exit == .interrupted)
      line.add("exit_status", exit.rawValue)
      output.write(line.timed() + "\n")
    } else if !options.isQuiet {
      let rate = Double(bytes) / max(0.001, Quantity.seconds(elapsed))
      var parts = [
        "\(Quantity.plural(count(.restored), "file")) restored, \(Quantity.text(bytes: bytes)) read in "
          + "\(Quantity.text(elapsed)) (\(Quantity.text(bytesPerSecond: rate)))"
      ]
      if count(.copied) > 0 { parts.append("\(Quantity.grouped(count(.copied))) copied, not sealed") }
      if count(.same) > 0 { parts.append("\(Quantity.grouped(count(.same))) there already") }
      if totals.failed > 0 { parts.append("\(Quantity.grouped(totals.failed)) failed") }
      if exit == .interrupted { parts.append("interrupted: run it again to go on") }
      output.write(parts.joined(separator: "; ") + "\n")
    }
    output.flush()
  }

  // MARK: Progress

  private func tick() {
    output.flush()
    if options.isQuiet || options.isJSON { return }
    let isTerminal = errors.isTerminal
    let line = state.withLock { totals -> String? in
      let bytes = read.load(ordering: .relaxed)
      totals.speed.add(bytes, at: Quantity.seconds(elapsed))
      if ContinuousClock.now < totals.nextProgress { return nil }
      totals.nextProgress = .now + (isTerminal ? .seconds(1) : .seconds(60))
      if !isTerminal, elapsed < .seconds(60) { return nil }
      totals.hasProgressLine = isTerminal
      return
        "\(Quantity.grouped(totals.settled)) of \(Quantity.grouped(totals.found))\(totals.isListed ? "" : "+") files, "
        + "\(Quantity.text(bytes: bytes)), \(Quantity.text(bytesPerSecond: totals.speed.bytesPerSecond))"
    }
    guard let line else { return }
    errors.write(isTerminal ? "\r\u{1B}[K\(fitted(line, errors.size.columns - 1))" : "fullbore: \(line)\n")
  }

  private func clearProgress() {
    let hasLine = state.withLock { totals in
      defer { totals.hasProgressLine = false }
      return totals.hasProgressLine
    }
    if hasLine { errors.write("\r\u{1B}[K") }
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
