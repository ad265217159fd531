import Blobs
import Platform
import Synchronization

/// Reports after the end of each day, by the time of this machine, what was sent in it. A line every day also shows that a
/// watch is alive.
final class DailySummary: Sendable {
  /// The sums at the begin of a day.
  private struct Day {
    var name: String
    var files: Int
    var bytes: Int64
    var failed: Int
  }
  private let day: Mutex<Day>
  private let report: any PushReport
  private let counters: PushCounters
  private let task = Mutex<Task<Void, Never>?>(nil)

  init(_ report: any PushReport, _ counters: PushCounters, today: String = DailySummary.today) {
    self.report = report
    self.counters = counters
    day = Mutex(Self.day(today, counters))
    let task = Task { [weak self] in
      while !Task.isCancelled {
        try? await Task.sleep(for: .seconds(10))
        self?.look()
      }
    }
    self.task.withLock { $0 = task }
  }

  func stop() { task.withLock { $0?.cancel() } }

  /// Reports the day before if `today` is another one.
  func look(today: String = DailySummary.today) {
    let now = Self.day(today, counters)
    let before = day.withLock { day -> Day? in
      if day.name == today { return nil }
      defer { day = now }
      return day
    }
    guard let before else { return }
    let files = now.files - before.files
    var text = "\(before.name): \(Quantity.plural(files, "file")) sent"
    if files > 0 { text += ", \(Quantity.text(bytes: now.bytes.subtractingClamped(before.bytes)))" }
    if now.failed > before.failed { text += "; \(Quantity.grouped(now.failed - before.failed)) failed" }
    let open = counters.files.open
    if open > 0 { text += "; \(Quantity.plural(open, "file")) still to be sent" }
    report.notice(text)
  }

  /// The name of this day.
  static var today: String { LocalTime.text(Int64(time(nil)), "%Y-%m-%d") }

  private static func day(_ name: String, _ counters: PushCounters) -> Day {
    let files = counters.files
    return Day(name: name, files: files.sent, bytes: counters.bytes.sent, failed: files.failed)
  }
}
