import BlobUpload
import Blobs

/// The totals of a push as one line: files, bytes, percentage, speed and time left.
struct ProgressFigures {
  private var speed = Speed()
  private var remaining = RemainingTime()

  /// Returns the line for now, in the most detailed form that has at most `width` columns. Call it several times a
  /// second: the speed and the time left are computed from the calls of the last seconds.
  /// - `running`: bytes of unfinished files that were sent.
  /// - `time`: seconds since any fixed point.
  mutating func line(_ counters: PushCounters, running: Int64, width: Int = .max, at time: Double) -> String {
    speed.add(counters.moved, at: time)
    let counts = counters.files
    let found = counts.foundBytes
    let isListed = counters.isListed.load(ordering: .relaxed)
    let settled = counts.settledBytes.addingClamped(running).addingClamped(counters.readOfOpen)
    let more = isListed ? "" : "+"
    let files =
      "\(Quantity.grouped(counts.there)) of \(Quantity.grouped(counts.found))\(more) files"
    // A listing may have no lengths.
    let whole = found > 0 ? " of \(Quantity.text(bytes: found))\(more)" : ""
    let bytes = Quantity.text(bytes: settled) + whole
    // A watch has nothing to do for hours.
    let isIdle = counters.isIdle
    let share = isListed && found > 0 && !isIdle ? Self.percentage(settled, of: found) : nil
    let rate = speed.isKnown && !isIdle ? Quantity.text(bytesPerSecond: speed.bytesPerSecond) : nil
    var left: String?
    let time = remaining.update(found.subtractingClamped(settled), bytesPerSecond: speed.steady, at: time)
    // Without a rest to send, the servers' answers are awaited.
    if let time, found > settled { left = (isListed ? "" : "at least ") + Self.text(left: time) + " left" }
    let failed = counts.failed > 0 ? "\(Quantity.grouped(counts.failed)) failed" : nil

    let forms = [
      [files, bytes, share, rate, left, failed], [files, share, rate, left, failed],
      [share ?? bytes, rate, left, failed],
      [share ?? bytes, left, failed],
    ].map { $0.compactMap { $0 }.joined(separator: ", ") }
    return forms.first { columns(of: $0) <= width } ?? fitted(forms[forms.count - 1], width)
  }

  /// Below 100, because the last byte counts only when the server has confirmed it. A finished file is not shown.
  static func percentage(_ bytes: Int64, of whole: Int64) -> String {
    whole <= 0 ? "0 %" : "\(min(99, Int(Double(max(0, min(bytes, whole))) / Double(whole) * 100))) %"
  }

  /// Formats a time left roughly, so that it does not change with each drawing: `7 s`, `35 s`, `4 min`, `2 h 5 min`.
  static func text(left seconds: Double) -> String {
    let whole = Int64(clamped: seconds.rounded(.up))
    if whole <= 10 { return "\(max(1, whole)) s" }
    if whole <= 90 { return "\((whole + 4) / 5 * 5) s" }
    let minutes = (whole + 30) / 60
    if minutes < 90 { return "\(minutes) min" }
    let fives = (minutes + 2) / 5 * 5
    return "\(fives / 60) h" + (fives % 60 > 0 ? " \(fives % 60) min" : "")
  }
}

extension ProgressFigures {
  /// The totals of each destination, as lines. With several destinations, each line begins with the destination's name.
  struct Lines {
    private var parts: [(title: String?, counters: PushCounters, figures: ProgressFigures)]

    init(_ counters: PushCounters, _ destinations: [ReportedDestination]) {
      parts =
        destinations.isEmpty
        ? [(nil, counters, ProgressFigures())] : destinations.map { ($0.title, $0.counters, ProgressFigures()) }
    }

    /// The names of the destinations; nil: there is only one.
    var titles: [String?] { parts.map(\.title) }

    /// The bytes by which the speed is computed, for each line.
    var moved: [Int64] { parts.map(\.counters.moved) }

    /// Bytes of unfinished large files that were sent, for each line.
    var running: [Int64] { parts.map(\.counters.large.sentBytes) }

    /// See `ProgressFigures.line`. `running`: bytes of unfinished files that were sent, for each line.
    mutating func lines(running: [Int64], width: Int = .max, at time: Double) -> [String] {
      parts.indices.map { index in
        let title = ReportedDestination.prefix(parts[index].title)
        return title
          + parts[index].figures.line(
            parts[index].counters, running: running[index], width: max(1, width - columns(of: title)), at: time)
      }
    }
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

  var isKnown: Bool { duration >= 0.2 }

  /// The same, but 0 in the first two seconds, which say little.
  var steady: Double { duration < 2 ? 0 : bytesPerSecond }

  /// The time between the first sample and the last one.
  private var duration: Double { (samples.last?.time ?? 0) - (samples.first?.time ?? 0) }
}

/// The time left. It counts down, and approaches the estimate by the current speed slowly.
struct RemainingTime {
  private var shown: Double?
  private var updated = 0.0
  /// In this many seconds, half of a difference from the estimate is made up for.
  private static let pace = 10.0

  /// Returns the seconds left; nil while nothing moves.
  mutating func update(_ bytes: Int64, bytesPerSecond: Double, at time: Double) -> Double? {
    guard bytesPerSecond >= 1 else {
      shown = nil
      return nil
    }
    let estimate = Double(max(0, bytes)) / bytesPerSecond
    let passed = max(0, time - updated)
    updated = time
    guard let before = shown else {
      shown = estimate
      return estimate
    }
    let counted = max(0, before - passed)
    let result = counted + (estimate - counted) * (passed / (passed + Self.pace))
    shown = result
    return result
  }
}
