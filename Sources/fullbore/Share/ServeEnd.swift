import BlobServer
import Blobs

/// Decides when `serve` ends: at a signal, after the time of `--for`, or with `--once` after the first visit.
final class ServeEnd: Sendable {
  /// Why the server ends. The raw values are those of `--json`.
  enum Reason: String, Sendable { case signal, time, visit }

  private let interruptions: AsyncStream<Int32>
  private let server: Server
  private let share: ShareOptions?
  private let report: ServeReport
  /// How long nothing may happen before a visit counts as ended: pages that have lost their connection come back. While
  /// an upload of the visit is not finished, it may be this many times longer: a phone is locked, or out of reach.
  private let pause: Duration
  private static let patience = 20

  /// Catches signals from now on.
  init(_ server: Server, _ share: ShareOptions?, _ report: ServeReport, pause: Duration = .seconds(30)) {
    (self.server, self.share, self.report, self.pause) = (server, share, report, pause)
    interruptions = Signals.interruptions()
  }

  @discardableResult func wait() async -> Reason {
    await withTaskGroup(of: Reason.self) { group in
      group.addTask {
        for await _ in self.interruptions { break }
        return .signal
      }
      if share != nil || report.showsProgress {
        group.addTask { await self.watch() }
      }
      let reason = await group.next() ?? .signal
      group.cancelAll()
      return reason
    }
  }

  /// Returns when the time is over or the visit has ended, or when the task is cancelled. A visit begins with a file that was
  /// sent or fetched, and lasts as long as requests with the code come.
  private func watch() async -> Reason {
    let began = ContinuousClock.now
    var (last, busy) = (server.activity, began)
    while !Task.isCancelled {
      try? await Task.sleep(for: .milliseconds(500))
      let (now, activity) = (ContinuousClock.now, server.activity)
      report.show(activity, server.senders)
      guard let share else { continue }
      if let period = share.period, now - began >= period { return .time }
      if activity.isVisited || activity.visits != last.visits { busy = now }
      last = activity
      let pause = activity.unfinished > 0 ? pause * Self.patience : pause
      let hasVisit = report.hasVisitor || activity.filesSent > 0
      if share.endsAfterVisit, hasVisit, now - busy >= pause { return .visit }
    }
    return .signal
  }
}
