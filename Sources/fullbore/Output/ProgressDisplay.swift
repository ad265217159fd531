import BlobUpload
import Blobs
import Synchronization

/// The output of a command that compares or restores files: results and messages as lines, and how far it is. On a terminal
/// that is the same board as a push has.
final class ProgressDisplay: Sendable {
  private let output = Console.output
  private let errors = Console.error
  private let ticker: Ticker
  /// nil: there is no terminal, or it is to show no progress.
  private let board: ProgressBoard?

  init(_ counters: PushCounters, _ options: OutputOptions) {
    let board = options.drawsBoard ? ProgressBoard(output, counters, .ofEnvironment) : nil
    self.board = board
    if let board {
      ticker = Ticker { board.draw() }
    } else {
      ticker = Ticker(
        flushing: output, totals: .init(counters, []), on: options.isQuiet || options.isJSON ? nil : errors)
    }
  }

  /// Writes a result: a line of standard output.
  func result(_ line: String) {
    if let board { board.say(line) } else { output.write(line + "\n") }
  }

  /// Writes a line about something that is wrong or to be known, to standard error if that is no terminal.
  func message(_ text: String) {
    if let board, errors.isTerminal { board.say("fullbore: \(text)") } else { errors.write("fullbore: \(text)\n") }
  }

  /// The last call: all output is written and flushed when it returns.
  func end(_ lines: [String]) {
    ticker.stop()
    if let board { return board.end(lines) }
    for line in lines { output.write(line + "\n") }
    output.flush()
  }
}

extension OutputOptions {
  /// Whether a person sees standard output as it is written.
  var drawsBoard: Bool {
    let isDumb = environment("TERM").map { $0 == "dumb" } ?? true
    return !isJSON && !isQuiet && !isDumb && Console.output.isTerminal
  }
}

/// Calls a closure ten times a second on its own thread until stopped.
final class Ticker: Sendable {
  private let stopped = StopFlag()

  init(_ tick: @escaping @Sendable () -> Void) {
    let stopped = stopped
    SystemThread.start("fullbore-show") {
      while !stopped.wait(milliseconds: 100) { tick() }
      stopped.confirm()
    }
  }

  deinit { stopped.stop() }

  /// When this returns, no further call is made. Must not be called from within the closure.
  func stop() { stopped.stop() }
}

extension Ticker {
  /// Flushes `output` while nobody waits for it, and writes the totals of each destination once in `interval` while bytes
  /// move. `errors`: where to; nil: they are not written.
  convenience init(
    flushing output: Console, totals: ProgressFigures.Lines, on errors: Console?,
    every interval: Duration = .seconds(60)
  ) {
    let began = ContinuousClock.now
    let state = Mutex((totals: totals, next: interval, moved: totals.moved.map { _ in Int64(0) }))
    self.init {
      output.flush()
      guard let errors else { return }
      let now = began.duration(to: .now)
      let lines = state.withLock { state -> [String] in
        let lines = state.totals.lines(running: state.totals.running, at: Quantity.seconds(now))
        if now < state.next { return [] }
        state.next = now + interval
        let moved = state.totals.moved
        defer { state.moved = moved }
        return lines.indices.filter { moved[$0] != state.moved[$0] }.map { lines[$0] }
      }
      for line in lines { errors.write("fullbore: \(line)\n") }
    }
  }
}
