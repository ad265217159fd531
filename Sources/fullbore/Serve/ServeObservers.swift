import BlobServer
import Blobs

/// Passes on what a server reports: to the terminal, to the access log, and for received files to a program and a URL.
final class ServeObservers: Sendable {
  private let report: ServeReport
  private let log: AccessLog?
  private let queues: [FileQueue<ReceivedFile>]
  private let notifier: UploadNotifier?

  /// How long the server waits at its end for what it has begun.
  private static let patience = Duration.seconds(10)

  /// `folder`: the served folder, or the place in a bucket. Throws if the log cannot be opened. From now on SIGHUP opens it again, unless a person
  /// runs the server in a terminal, whose end still ends the server.
  init(_ options: MonitoringOptions, _ folder: BytePath, _ report: ServeReport) throws(ServerError) {
    self.report = report
    if let path = options.log {
      let log = AccessLog(try LogFile(path), options.format) { report.notice($0) }
      if !Console.error.isTerminal { Signals.onHangup { log.reopen() } }
      self.log = log
    } else {
      log = nil
    }
    var queues: [FileQueue<ReceivedFile>] = []
    let notice = { @Sendable (text: String) in report.notice(text) }
    if let command = options.command {
      queues.append(command.queue(output: report.programOutput, notice: notice) { folder.appending($0.path) })
    }
    if let url = options.url {
      let notifier = UploadNotifier(url, notice: notice)
      self.notifier = notifier
      queues.append(
        FileQueue("--notify", notice: notice, problem: { notifier.problem }) { entry in _ = await notifier.send(entry) }
      )
    } else {
      notifier = nil
    }
    self.queues = queues
  }

  /// Sets the functions that the server calls.
  func observe(_ options: inout ServerOptions) {
    options.notice = { [report] in report.notice($0) }
    options.received = { [report, queues] file in
      report.received(file)
      for queue in queues { queue.add(file) }
    }
    if let log { options.answered = { log.add($0) } }
  }

  /// Call after the server has stopped.
  func finish() async {
    await withTaskGroup(of: Void.self) { group in
      for queue in queues { group.addTask { await queue.finish(within: Self.patience) } }
    }
    notifier?.finish()
    guard let log else { return }
    await BlockingPool.shared.run { log.finish(within: .seconds(2)) }
  }
}
