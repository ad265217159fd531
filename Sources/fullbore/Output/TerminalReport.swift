import BlobUpload
import Blobs
import Synchronization

/// Output for a person: a bar per file in progress, the reason while nothing moves, and a line with the totals, redrawn ten
/// times a second.
///
/// Failures stay above these lines. Finished files leave a line only with `--verbose`.
final class TerminalReport: PushReport {
  private let board: ProgressBoard
  private let options: OutputOptions
  private let style: TerminalStyle
  private let ticker: Ticker
  private let advice = GivenAdvice()
  /// The outage that the board shows.
  private let current = Mutex<Outage?>(nil)
  /// The name of the only destination that this report is for; nil: the report is for all.
  private let title: String?

  init(
    _ output: Console, _ counters: PushCounters, _ options: OutputOptions,
    _ style: TerminalStyle = .ofEnvironment, of destinations: [ReportedDestination] = []
  ) {
    self.options = options
    self.style = style
    title = nil
    let board = ProgressBoard(output, counters, style, of: destinations)
    self.board = board
    ticker = Ticker { board.draw() }
  }

  /// For what concerns one destination.
  init(of destination: ReportedDestination, in whole: TerminalReport) {
    (board, options, style, ticker) = (whole.board, whole.options, whole.style, whole.ticker)
    title = destination.title
  }

  private var prefix: String { ReportedDestination.prefix(title) }

  func about(_ destination: ReportedDestination) -> any PushReport { TerminalReport(of: destination, in: self) }

  func began(at endpoint: String, speaking protocolName: String) {
    if options.isVerbose { board.say("\(prefix)\(shown(endpoint)): speaks \(protocolName)") }
  }

  func started(_ file: PushedFile) {
    var file = file
    file.destination = title
    board.add(file)
  }

  func finished(_ file: PushedFile, how: Finish) {
    board.remove(file, remark: options.isVerbose ? finishedLine(file, how, options).map { prefix + $0 } : nil)
  }

  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?) {
    let text = shown(self.advice.text(message, advice))
    board.remove(file, remark: "\(style.failure("failed")): \(prefix)\(shown(file.relative)): \(text)")
  }

  func failed(_ path: BytePath, _ message: String) {
    board.say("\(style.failure("failed")): \(prefix)\(shown(path)): \(shown(message))")
  }

  func dropped(_ file: PushedFile) { board.remove(file, remark: nil) }

  func leftOut(_ path: BytePath, reason: String) {
    if options.isVerbose { board.say("\(prefix)\(shown(path))  left out: \(reason)") }
  }

  func notice(_ text: String) { board.say(prefix + shown(text)) }

  func chosen(_ path: BytePath, _ what: String, length: Int64?) {
    Console.output.write("\(prefix)\(shown(path))  \(what)\n")
  }

  /// A program that wrote to the terminal by itself would write into the board.
  var programOutput: (@Sendable (String) -> Void)? {
    if !Console.error.isTerminal { return nil }
    return { [board] line in board.say(shown(line)) }
  }

  /// The line of the outage is drawn over, so that the time until the next attempt counts down.
  var outageInterval: Duration { .milliseconds(500) }

  func outage(_ outage: Outage) {
    board.show(outage: outage.isOver ? nil : shown(outage.text), of: title)
    let before = current.withLock { current in
      defer { current = outage.isOver ? nil : outage }
      return current
    }
    // The next drawing overwrites the message of the outage, so these lines repeat it.
    if outage.isOver { for text in [before?.what, outage.what].compactMap(\.self) { notice(text) } }
  }

  func ended(_ text: String, _ error: UploadError?) { notice(text) }

  func summary(_ summary: PushSummary) {
    ticker.stop()
    board.end(summary.lines)
  }
}
