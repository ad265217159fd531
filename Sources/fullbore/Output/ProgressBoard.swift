import BlobUpload
import Blobs
import Synchronization

/// The progress lines at the bottom of a terminal, which are redrawn periodically.
final class ProgressBoard: Sendable {
  /// Maximum number of files with their own line; other files are only counted.
  private static let shownFiles = 8

  private struct State {
    var running: [PushedFile] = []
    /// Messages since the last drawing, which stay on the screen.
    var remarks: [String] = []
    /// Why nothing moves to a destination at the moment, by the destination's name.
    var outages: [(title: String?, text: String)] = []
    var totals: ProgressFigures.Lines
  }
  private let state: Mutex<State>
  private let output: Console
  private let style: TerminalStyle
  private let began = ContinuousClock.now

  init(
    _ output: Console, _ counters: PushCounters, _ style: TerminalStyle, of destinations: [ReportedDestination] = []
  ) {
    self.output = output
    state = Mutex(State(totals: .init(counters, destinations)))
    self.style = style
  }

  func add(_ file: PushedFile) { state.withLock { $0.running.append(file) } }

  func remove(_ file: PushedFile, remark: String?) {
    state.withLock { state in
      state.running.removeAll { $0.progress === file.progress }
      if let remark { state.remarks.append(remark) }
    }
  }

  func say(_ remark: String) { state.withLock { $0.remarks.append(remark) } }

  /// Shows `text` above the totals until it is replaced; nil removes it. `title`: the destination's name.
  func show(outage text: String?, of title: String? = nil) {
    state.withLock { state in
      state.outages.removeAll { $0.title == title }
      if let text { state.outages.append((title, text)) }
    }
  }

  func draw() { draw(ending: nil) }

  /// Replaces the board by the pending messages and `lines`.
  func end(_ lines: [String]) { draw(ending: lines) }

  private func draw(ending: [String]?) {
    let size = output.size
    let now = Quantity.seconds(began.duration(to: .now))
    let text = state.withLock { state in
      var text = "\r"
      for line in state.remarks { text += line + "\u{1B}[K\n" }
      if let ending { return text + ending.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J" }
      let lines = boardLines(&state, size, at: now)
      text += board(of: lines)
      state.remarks = []
      return text
    }
    output.write(text)
    output.flush()
  }

  private func boardLines(_ state: inout State, _ size: (columns: Int, rows: Int), at now: Double) -> [String] {
    // Lines that do not fit on the screen could not be overwritten. The last column stays empty, since a terminal that
    // is widened may join a full line with the next one.
    let width = max(1, size.columns - 1)
    let outage = state.outages.flatMap { wrapped($0.text, width, most: 3) }
    let most = max(0, min(Self.shownFiles, size.rows - 2 - state.totals.titles.count - outage.count))
    var lines = state.running.prefix(most).map { Self.line(for: $0, width: width, style) }
    func add(_ text: String) { lines.append(fitted(text, width)) }
    let rest = state.running.count - lines.count
    if rest > 0 { add("  and \(Quantity.grouped(rest)) more") }
    outage.forEach(add)
    let files = Dictionary(grouping: state.running, by: \.destination)
    lines += state.totals.lines(
      running: state.totals.titles.map {
        (files[$0] ?? []).lazy.map { min($0.progress.sent, $0.length ?? .max) }.clampedSum
      },
      width: width, at: now)
    return lines
  }

  /// The line for a file in progress: the name, a bar, the percentage and, from 60 columns on, the length. Colors do not
  /// count as columns.
  static func line(for file: PushedFile, width: Int, _ style: TerminalStyle) -> String {
    let position = file.progress.sent
    var figures = ""
    var bar = 0
    if let length = file.length {
      figures = padded(ProgressFigures.percentage(position, of: length), 4)
      if width >= 60 { figures += " of \(padded(Quantity.text(bytes: length), 9))" }
      bar = width >= 36 ? min(24, width / 4) : 0
    } else {
      figures = padded(Quantity.text(bytes: position), 9)
    }
    let room = max(0, width - figures.count - 2 - (bar > 0 ? bar + 2 : 0))
    let name = fitted("  " + file.name, room)
    let space = String(repeating: " ", count: max(0, room - columns(of: name)))
    let text = name + space + "  "
    guard let length = file.length, bar > 0 else { return fitted(text + figures, width) }
    let share = length > 0 ? Double(position) / Double(length) : 0
    return text + style.bar(share, width: bar) + "  " + figures
  }
}
