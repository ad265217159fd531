import Blobs
import Synchronization

/// Output for a person: a line per file in progress and one for the total, redrawn ten times a second.
///
/// Failures stay above these lines. Finished files leave a line only with `--verbose`.
final class TerminalReport: PushReport {
  private let board: ProgressBoard
  private let options: OutputOptions
  private let ticker: Ticker

  init(_ output: Console, _ counters: PushCounters, _ options: OutputOptions) {
    self.options = options
    let board = ProgressBoard(output, counters)
    self.board = board
    ticker = Ticker { board.draw() }
  }

  func started(_ file: PushedFile) { board.add(file) }

  func finished(_ file: PushedFile, how: Finish) {
    board.remove(file, remark: options.isVerbose ? finishedLine(file, how, options) : nil)
  }

  func failed(_ file: PushedFile, _ message: String) {
    board.remove(file, remark: "failed: \(shown(file.relative)): \(shown(message))")
  }

  func failed(_ path: BytePath, _ message: String) { board.say("failed: \(shown(path)): \(shown(message))") }

  func dropped(_ file: PushedFile) { board.remove(file, remark: nil) }

  func leftOut(_ path: BytePath, reason: String) {
    if options.isVerbose { board.say("\(shown(path))  left out: \(reason)") }
  }

  func notice(_ text: String) { board.say(shown(text)) }
  func outage(_ outage: Outage) { notice(outage.text) }
  func ended(_ text: String) { notice(text) }

  func summary(_ summary: PushSummary) {
    ticker.stop()
    board.end(summary.text)
  }
}
