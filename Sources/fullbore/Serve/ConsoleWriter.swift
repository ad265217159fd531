import Blobs
import Synchronization

/// Writes lines to a terminal or a pipe on a thread of its own, because its reader may stop reading: a person presses Ctrl-S,
/// or a program is stuck. Nobody who reports something waits for that.
final class ConsoleWriter: Sendable {
  private let console: Console
  private let queue = BoundedQueue<String>(atMost: 1000, size: 1 << 20)
  /// The newest text for the last lines of the terminal; nil: it was drawn.
  private let status = Mutex<[String]?>(nil)
  private let notice: @Sendable (Int) -> Void
  /// The thread runs. It starts with the first line, since most servers write to one console only.
  private let isStarted = Atomic(false)

  /// `notice` gets the number of lines that were left out, on the thread of the writer; nil: the writer itself says it there.
  init(_ console: Console, leftOut notice: (@Sendable (Int) -> Void)? = nil) {
    self.console = console
    self.notice = notice ?? { count in console.write("\(Self.warning(count, place: "here"))\n") }
  }

  static func warning(_ count: Int, place: String) -> String {
    "fullbore serve: warning: \(Quantity.plural(count, "line")) \(count == 1 ? "was" : "were") left out \(place), "
      + "because nobody read the ones before"
  }

  func write(_ line: String) {
    queue.add(line, size: line.utf8.count)
    start()
  }

  /// Draws the last lines of the terminal, in place of those that were drawn before.
  func draw(_ lines: [String]) {
    status.withLock { $0 = lines }
    queue.wake()
    start()
  }

  private func start() {
    if isStarted.exchange(true, ordering: .relaxed) { return }
    SystemThread.start("fullbore-report") { self.run() }
  }

  /// Blocks until all is written, `limit` at most. If that is not enough, the rest is never written, and nothing that is
  /// written later to the same console waits for its reader. Returns whether all was written.
  @discardableResult func finish(within limit: Duration) -> Bool {
    if !isStarted.load(ordering: .relaxed) || queue.finish(within: limit) { return true }
    console.abandon()
    return false
  }

  private func run() {
    var hasStatus = false
    while true {
      let batch = queue.next()
      if hasStatus, !batch.items.isEmpty || batch.dropped > 0 || batch.isEnding {
        console.write("\r\u{1B}[J")
        hasStatus = false
      }
      if !batch.items.isEmpty { console.write(batch.items.map { "\($0)\n" }.joined()) }
      if batch.dropped > 0 { notice(batch.dropped) }
      if batch.isEnding {
        if batch.items.isEmpty { break }
      } else if let lines = status.withLock({ $0.take() }) {
        console.write("\r" + board(of: lines))
        hasStatus = true
      }
      console.flush()
    }
    console.flush()
    queue.end()
  }
}
