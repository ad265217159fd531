import BlobUpload
import Blobs
import Synchronization

/// The progress lines at the bottom of a terminal, which are redrawn periodically.
final class ProgressBoard: Sendable {
  /// Maximum number of files with their own line; other files are only counted.
  static let shownFiles = 8

  private struct State {
    var running: [PushedFile] = []
    /// Messages since the last drawing, which stay on the screen.
    var remarks: [String] = []
    /// Number of lines drawn last time, which the next drawing overwrites.
    var drawn = 0
    var speed = Speed()
  }
  private let state = Mutex(State())
  private let output: Console
  private let counters: PushCounters
  private let began = ContinuousClock.now

  init(_ output: Console, _ counters: PushCounters) {
    self.output = output
    self.counters = counters
  }

  func add(_ file: PushedFile) { state.withLock { $0.running.append(file) } }

  func remove(_ file: PushedFile, remark: String?) {
    state.withLock { state in
      state.running.removeAll { $0.progress === file.progress }
      if let remark { state.remarks.append(remark) }
    }
  }

  func say(_ remark: String) { state.withLock { $0.remarks.append(remark) } }

  func draw() { draw(ending: nil) }

  /// Replaces the board by the pending messages and `line`.
  func end(_ line: String) { draw(ending: line) }

  private func draw(ending: String?) {
    let width = output.width
    let now = Quantity.seconds(began.duration(to: .now))
    let text = state.withLock { state in
      state.speed.add(counters.bytes.sent, at: now)
      let lines = ending == nil ? boardLines(state, width: width) : []
      // Moves up to the first line of the last drawing, rewrites each line and clears its rest, then clears everything
      // below.
      var text = state.drawn > 0 ? "\r\u{1B}[\(state.drawn)A" : ""
      for line in state.remarks { text += line + "\u{1B}[K\n" }
      for line in lines { text += line + "\u{1B}[K\n" }
      if let ending { text += ending + "\u{1B}[K\n" }
      text += "\u{1B}[J"
      state.remarks = []
      state.drawn = lines.count
      return text
    }
    output.write(text)
    output.flush()
  }

  private func boardLines(_ state: State, width: Int) -> [String] {
    var lines = state.running.prefix(Self.shownFiles).map { Self.line(for: $0, width: width) }
    let rest = state.running.count - lines.count
    if rest > 0 { lines.append(fitted("  and \(rest) more", width)) }
    lines.append(fitted(total(state), width))
    return lines
  }

  static func line(for file: PushedFile, width: Int) -> String {
    let position = file.progress.sent
    let figures: String
    if let length = file.length {
      let share = length == 0 ? 100 : Int(Double(min(position, length)) / Double(length) * 100)
      figures = "\(padded("\(share)", 3)) % of \(padded(Quantity.text(bytes: length), 9))"
    } else {
      figures = padded(Quantity.text(bytes: position), 18)
    }
    let room = max(0, width - figures.count - 3)
    let name = fitted("  " + shown(file.relative), room)
    return fitted(name + String(repeating: " ", count: room - columns(of: name)) + "  " + figures, width)
  }

  private func total(_ state: State) -> String {
    let found = counters.bytesFound.load(ordering: .relaxed)
    let isListed = counters.isListed.load(ordering: .relaxed)
    let running = state.running.lazy.map { min($0.progress.sent, $0.length ?? .max) }.clampedSum
    let settled = counters.settledBytes.load(ordering: .relaxed).addingClamped(running)
    let files =
      counters.filesSent.load(ordering: .relaxed) + counters.filesDoneBefore.load(ordering: .relaxed)
      + counters.filesAlreadyThere.load(ordering: .relaxed)
    let filesFound = counters.filesFound.load(ordering: .relaxed)
    let speed = state.speed.bytesPerSecond
    var text =
      "\(Quantity.grouped(files)) of \(Quantity.grouped(filesFound))\(isListed ? "" : "+") files, "
      + "\(Quantity.text(bytes: settled)) of \(Quantity.text(bytes: found))\(isListed ? "" : "+")"
    if isListed && found > 0 { text += ", \(Int(Double(min(settled, found)) / Double(found) * 100)) %" }
    text += ", \(Quantity.text(bytesPerSecond: speed))"
    if isListed && speed > 0 && found > settled {
      text += ", \(Quantity.text(seconds: Double(found.subtractingClamped(settled)) / speed)) left"
    }
    let failed = counters.filesFailed.load(ordering: .relaxed)
    return failed > 0 ? text + ", \(Quantity.grouped(failed)) failed" : text
  }
}

/// The speed over the last five seconds, computed from samples of a growing sum.
struct Speed {
  private var samples: [(time: Double, bytes: Int64)] = []
  private let window = 5.0

  mutating func add(_ bytes: Int64, at time: Double) {
    samples.append((time, bytes))
    while samples.count > 2, time - samples[1].time > window { samples.removeFirst() }
  }

  var bytesPerSecond: Double {
    guard let first = samples.first, let last = samples.last, last.time > first.time else { return 0 }
    return Double(last.bytes.subtractingClamped(first.bytes)) / (last.time - first.time)
  }
}

private func padded(_ text: String, _ width: Int) -> String {
  String(repeating: " ", count: max(0, width - text.count)) + text
}

/// `text` truncated to `width` columns, with `…` in place of the missing part.
func fitted(_ text: String, _ width: Int) -> String {
  if columns(of: text) <= width { return text }
  var result = ""
  var used = 0
  for character in text {
    let columns = columns(of: String(character))
    if used + columns > width - 1 { break }
    result.append(character)
    used += columns
  }
  return width > 0 ? result + "…" : ""
}

/// Columns of `text` in a terminal: two for wide East Asian characters and emoji, none for combining marks.
func columns(of text: String) -> Int {
  text.reduce(0) { sum, character in
    guard let scalar = character.unicodeScalars.first else { return sum }
    switch scalar.value {
    case 0x300...0x36F, 0x200B...0x200F, 0xFE00...0xFE0F: return sum
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
      0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      return sum + 2
    default: return sum + 1
    }
  }
}
