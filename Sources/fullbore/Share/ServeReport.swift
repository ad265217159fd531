import BlobServer
import Blobs
import Synchronization

/// Says what `serve` receives, while it runs: to a person a line per file, and on a terminal also who sends what and how fast;
/// to a program an object of JSON per file, and one a second of what is being sent. Whoever reports something does not wait
/// until it is written.
final class ServeReport: Sendable {
  enum Style: Sendable { case silent, person, json }

  private struct State {
    var files = 0
    var bytes: Int64 = 0
    var hasVisitor = false
    var speed = Speed()
    var progress = ServeProgress()
    /// When the last object about the progress was written, in seconds since the begin.
    var reported = -Double.infinity
  }
  private let style: Style
  private let state = Mutex(State())
  private let output: ConsoleWriter
  private let error: ConsoleWriter
  /// nil: nothing is drawn.
  private let terminal: Console?
  private let began = ContinuousClock.now

  init(_ style: Style, output: Console = .output, error: Console = .error) {
    self.style = style
    terminal = style == .person && error.isTerminal ? error : nil
    let writer = ConsoleWriter(error)
    self.error = writer
    self.output = ConsoleWriter(output) { count in
      writer.write(ConsoleWriter.warning(count, place: "of standard output"))
    }
  }

  func received(_ file: ReceivedFile) {
    state.withLock { state in
      state.files += 1
      state.bytes += file.length
      if file.sender != nil { state.hasVisitor = true }
    }
    switch style {
    case .silent: break
    case .json: output.write(JSONLine(received: file).text)
    case .person:
      let sender = file.sender.map { "  from \($0.name)" } ?? ""
      let remark = file.wasThere ? "  was there already" : ""
      error.write("\(shown(file.path))  \(Quantity.text(bytes: file.length))\(sender)\(remark)")
    }
  }

  func notice(_ text: String) { error.write("fullbore serve: warning: \(shown(text))") }

  /// Writes a line of a program that is run for each file. nil: it may write to standard error by itself, as there is no line
  /// that is drawn over.
  var programOutput: (@Sendable (String) -> Void)? {
    if terminal == nil { return nil }
    return { [error] line in error.write(shown(line)) }
  }

  /// Whether `show` has something to do.
  var showsProgress: Bool { terminal != nil || style == .json }

  /// Draws the lines with what is being sent, or once a second writes the object with that. Called twice a second.
  func show(_ activity: Server.Activity, _ senders: [ActiveSender]) {
    guard showsProgress else { return }
    let now = Quantity.seconds(began.duration(to: .now))
    let progress = state.withLock { state in
      state.progress.update(senders, at: now)
      return state.progress
    }
    if let terminal { return draw(activity, progress, terminal.size, at: now) }
    let isDue = state.withLock { state in
      // The calls are not exactly half a second apart.
      if progress.isEmpty || now - state.reported < 0.8 { return false }
      state.reported = now
      return true
    }
    if isDue { output.write(progress.json.text) }
  }

  private func draw(
    _ activity: Server.Activity, _ progress: ServeProgress, _ size: (columns: Int, rows: Int), at now: Double
  ) {
    let total = state.withLock { state in
      state.speed.add(activity.bytesReceived, at: now)
      let total = "\(Quantity.plural(state.files, "file")), \(Quantity.text(bytes: state.bytes))"
      let speed = Quantity.text(bytesPerSecond: state.speed.bytesPerSecond)
      let running = activity.requests == 0 ? "waiting" : "\(Quantity.plural(activity.requests, "request"))  \(speed)"
      return "\(total)  \(running)"
    }
    // The last column stays empty, since a terminal that is widened may join a full line with the next one.
    let width = max(1, size.columns - 1)
    let most = max(1, min(Self.shownSenders, size.rows - 3))
    error.draw(progress.lines(width: width, most: most) + [fitted(total, width)])
  }

  /// More clients than these are only counted.
  private static let shownSenders = 8

  /// Says why the server has ended, what was not finished, and what was received in all.
  func end(_ reason: ServeEnd.Reason, _ unfinished: [UnfinishedUpload], cut downloads: [BytePath], expire: Duration) {
    let (files, bytes) = state.withLock { ($0.files, $0.bytes) }
    switch style {
    case .silent: break
    case .person:
      for line in ServeSummary(reason, unfinished, cut: downloads, expire: expire).lines { error.write(line) }
      error.write("\(Quantity.plural(files, "file")), \(Quantity.text(bytes: bytes)) received")
    case .json:
      for upload in unfinished { output.write(JSONLine(unfinished: upload).text) }
      for path in downloads {
        var line = JSONLine("cut")
        line.add(path: path)
        output.write(line.text)
      }
      var line = JSONLine("ended")
      line.add("reason", reason.rawValue)
      line.add("files", files)
      line.add("bytes", bytes)
      line.add("unfinished", unfinished.count)
      output.write(line.text)
    }
  }

  /// Writes what waits, and waits no longer than `limit` for each reader that does not read.
  func finish(within limit: Duration) {
    if !output.finish(within: limit) {
      error.write("fullbore serve: warning: nobody reads standard output: the last lines were not written")
    }
    error.finish(within: limit)
  }

  /// Whether a client of this run has sent a file. Files that had arrived before, and that the server publishes when it
  /// starts, do not count.
  var hasVisitor: Bool { state.withLock { $0.hasVisitor } }
}
