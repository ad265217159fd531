import BlobServer
import Blobs
import Synchronization

/// Says what `serve` receives, while it runs: to a person a line per file, and on a terminal also how fast files come; to a
/// program an object of JSON per file.
final class ServeReport: Sendable {
  enum Style: Sendable { case silent, person, json }

  private struct State {
    var files = 0
    var bytes: Int64 = 0
    /// Whether the last line of the terminal is the one that is drawn again and again.
    var hasStatus = false
    var speed = Speed()
  }
  private let style: Style
  private let state = Mutex(State())
  private let began = ContinuousClock.now

  init(_ style: Style) { self.style = style }

  func received(_ file: ReceivedFile) {
    state.withLock { state in
      state.files += 1
      state.bytes += file.length
    }
    switch style {
    case .silent: break
    case .json:
      write(Console.output, JSONLine(received: file).text)
    case .person:
      let sender = file.sender.map { "  from \(Self.name($0))" } ?? ""
      let remark = file.wasThere ? "  was there already" : ""
      write(Console.error, "\(shown(file.path))  \(Quantity.text(bytes: file.length))\(sender)\(remark)")
    }
  }

  func notice(_ text: String) { write(Console.error, "fullbore serve: warning: \(shown(text))") }

  /// Draws the line with the current speed. Called now and then.
  func draw(_ activity: Server.Activity) {
    guard style == .person, Console.error.isTerminal else { return }
    let now = Quantity.seconds(began.duration(to: .now))
    state.withLock { state in
      state.speed.add(activity.bytesReceived, at: now)
      let total = "\(Quantity.plural(state.files, "file")), \(Quantity.text(bytes: state.bytes))"
      let speed = Quantity.text(bytesPerSecond: state.speed.bytesPerSecond)
      let running = activity.requests == 0 ? "waiting" : "\(Quantity.plural(activity.requests, "request"))  \(speed)"
      Console.error.write("\r\(total)  \(running)\u{1B}[K")
      state.hasStatus = true
    }
  }

  /// Ends the status line with what was received in all.
  func end() {
    guard style == .person else { return }
    let (files, bytes) = state.withLock { ($0.files, $0.bytes) }
    write(Console.error, "\(Quantity.plural(files, "file")), \(Quantity.text(bytes: bytes)) received")
  }

  /// Whether a file was received.
  var hasReceived: Bool { state.withLock { $0.files > 0 } }

  /// Writes a line above the status line. Several threads may call.
  private func write(_ console: Console, _ line: String) {
    state.withLock { state in
      if state.hasStatus { Console.error.write("\r\u{1B}[K") }
      state.hasStatus = false
      console.write("\(line)\n")
      console.flush()
    }
  }

  /// The client in words: what a browser says about its device, and the address.
  private static func name(_ sender: Sender) -> String {
    let agent = sender.agent ?? ""
    let devices = ["iPhone", "iPad", "Android", "Windows", "Macintosh", "CrOS", "Linux"]
    let device = devices.first { agent.contains($0) } ?? agent.prefix { $0 != "/" && $0 != " " }.description
    let address = sender.address ?? "a closed connection"
    return device.isEmpty ? address : "\(address) (\(shown(device)))"
  }
}
