import BlobUpload
import Blobs

/// Output for a pipe or a log: a line per finished file and a summary at the end; on standard error failures, and the
/// totals once a minute while bytes move.
final class LineReport: PushReport {
  private let output: Console
  private let errors: Console
  private let options: OutputOptions
  private let ticker: Ticker
  /// The name of the only destination that this report is for; nil: the report is for all.
  private let title: String?
  private let advice = GivenAdvice()

  /// - `interval`: the time after which the totals are written again.
  /// - `destinations`: whose totals are written, if there are several.
  init(
    _ output: Console, errors: Console, _ counters: PushCounters, _ options: OutputOptions,
    interval: Duration = .seconds(60), of destinations: [ReportedDestination] = []
  ) {
    self.output = output
    self.errors = errors
    self.options = options
    title = nil
    ticker = Ticker(
      flushing: output, totals: .init(counters, destinations), on: options.isQuiet ? nil : errors, every: interval)
  }

  /// For what concerns one destination.
  init(of destination: ReportedDestination, in whole: LineReport) {
    (output, errors, options, ticker) = (whole.output, whole.errors, whole.options, whole.ticker)
    title = destination.title
  }

  private var prefix: String { ReportedDestination.prefix(title) }

  func about(_ destination: ReportedDestination) -> any PushReport { LineReport(of: destination, in: self) }

  func began(at endpoint: String, speaking protocolName: String) {
    if options.isVerbose { notice("\(endpoint): speaks \(protocolName)") }
  }

  func started(_ file: PushedFile) {}

  func finished(_ file: PushedFile, how: Finish) {
    if !options.isQuiet, let line = finishedLine(file, how, options) { output.write(prefix + line + "\n") }
  }

  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?) {
    errors.write("fullbore: \(prefix)\(shown(file.relative)): \(shown(self.advice.text(message, advice)))\n")
  }

  func failed(_ path: BytePath, _ message: String) {
    errors.write("fullbore: \(prefix)\(shown(path)): \(shown(message))\n")
  }

  func dropped(_ file: PushedFile) {}

  func leftOut(_ path: BytePath, reason: String) {
    if options.isVerbose { output.write("\(prefix)\(shown(path))  left out: \(reason)\n") }
  }

  func notice(_ text: String) {
    if !options.isQuiet { errors.write("fullbore: \(prefix)\(shown(text))\n") }
  }

  func chosen(_ path: BytePath, _ what: String, length: Int64?) { output.write("\(prefix)\(shown(path))  \(what)\n") }

  func outage(_ outage: Outage) { notice(outage.text) }

  func ended(_ text: String, _ error: UploadError?) { errors.write("fullbore: \(prefix)\(shown(text))\n") }

  func summary(_ summary: PushSummary) {
    ticker.stop()
    if !options.isQuiet { for line in summary.lines { output.write(line + "\n") } }
    output.flush()
  }
}

/// The line for a finished file; nil if there is none without `--verbose`.
func finishedLine(_ file: PushedFile, _ how: Finish, _ options: OutputOptions) -> String? {
  var length = file.length
  if case .sent(let bytes, resumedFrom: let start) = how { length = length ?? start.addingClamped(bytes) }
  let size = length.map { "  \(Quantity.text(bytes: $0))" } ?? ""
  switch how {
  case .sent(_, resumedFrom: 0): return shown(file.relative) + size
  case .sent(_, let start): return shown(file.relative) + size + "  resumed at byte \(start)"
  case .doneBefore(let evidence):
    return options.isVerbose ? shown(file.relative) + size + "  done before, " + evidence.text : nil
  case .alreadyThere: return options.isVerbose ? shown(file.relative) + size + "  already there" : nil
  }
}
