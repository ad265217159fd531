import BlobServer
import Blobs
import Synchronization

/// Says what `serve` receives, while it runs: to a person a line per file, and on a terminal also how fast files come; to a
/// program an object of JSON per file. Whoever reports something does not wait until it is written.
final class ServeReport: Sendable {
  enum Style: Sendable { case silent, person, json }

  private struct State {
    var files = 0
    var bytes: Int64 = 0
    var hasVisitor = false
    var speed = Speed()
  }
  private let style: Style
  private let state = Mutex(State())
  private let output: ConsoleWriter
  private let error: ConsoleWriter
  private let drawsStatus: Bool
  private let began = ContinuousClock.now

  init(_ style: Style, output: Console = .output, error: Console = .error) {
    self.style = style
    drawsStatus = style == .person && error.isTerminal
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
      let sender = file.sender.map { "  from \(Self.name($0))" } ?? ""
      let remark = file.wasThere ? "  was there already" : ""
      error.write("\(shown(file.path))  \(Quantity.text(bytes: file.length))\(sender)\(remark)")
    }
  }

  func notice(_ text: String) { error.write("fullbore serve: warning: \(shown(text))") }

  /// Writes a line of a program that is run for each file. nil: it may write to standard error by itself, as there is no line
  /// that is drawn over.
  var programOutput: (@Sendable (String) -> Void)? {
    if !drawsStatus { return nil }
    return { [error] line in error.write(shown(line)) }
  }

  /// Draws the line with the current speed. Called now and then.
  func draw(_ activity: Server.Activity) {
    guard drawsStatus else { return }
    let now = Quantity.seconds(began.duration(to: .now))
    let text = state.withLock { state in
      state.speed.add(activity.bytesReceived, at: now)
      let total = "\(Quantity.plural(state.files, "file")), \(Quantity.text(bytes: state.bytes))"
      let speed = Quantity.text(bytesPerSecond: state.speed.bytesPerSecond)
      let running = activity.requests == 0 ? "waiting" : "\(Quantity.plural(activity.requests, "request"))  \(speed)"
      return "\(total)  \(running)"
    }
    error.draw(text)
  }

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

  /// The client in words: what a browser says about its device, and the address.
  private static func name(_ sender: Sender) -> String {
    let agent = sender.agent ?? ""
    let devices = ["iPhone", "iPad", "Android", "Windows", "Macintosh", "CrOS", "Linux"]
    let device = devices.first { agent.contains($0) } ?? agent.prefix { $0 != "/" && $0 != " " }.description
    let address = sender.address ?? "a closed connection"
    return device.isEmpty ? address : "\(address) (\(shown(cut(device))))"
  }

  /// Anyone can say anything in `User-Agent`, of any length.
  private static func cut(_ text: String) -> String {
    let most = 60
    let scalars = text.unicodeScalars
    return scalars.count <= most ? text : "\(String(String.UnicodeScalarView(scalars.prefix(most))))…"
  }
}
