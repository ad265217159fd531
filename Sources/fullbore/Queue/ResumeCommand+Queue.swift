import BlobQueue
import BlobUpload
import Blobs
import Synchronization

// A resume of a queue that several machines share: one of its uploaders.
extension ResumeCommand {
  /// Sends what is in the queue, one destination after the other; one that cannot be reached does not prevent the others. Ends
  /// when nothing is left that this machine could send, also if another one died.
  func resume(
    sharing url: String, _ report: any PushReport, _ counters: PushCounters
  ) async -> Result<UploadError?, UsageError> {
    do throws(UploadError) {
      let queue = try await SharedQueue.open(url, report)
      let known = try await queue.run { queue throws(JournalError) in try queue.destinations() }
      var begun: [(id: Int64, destination: JournalDestination)] = []
      for (id, destination) in known.sorted(by: { $0.key < $1.key }) where choice.contains(destination) {
        let hasWork = try await queue.run { queue throws(JournalError) in
          // This process does not try again what fails after this.
          let retried = try queue.retryFailed(at: id)
          if retried > 0 { return true }
          return try queue.hasWork(at: id)
        }
        if hasWork { begun.append((id, destination)) }
      }
      do throws(UsageError) {
        try choice.check(isAmong: Array(known.values))
        try connection.check(isForAll: begun.map(\.destination), "Name one: 'fullbore resume URL', with these options")
      } catch {
        return .failure(error)
      }
      let reports = DestinationReports(report, counters, of: Set(begun.map(\.destination.endpoint)))
      var first: UploadError?
      let workers = Mutex<Set<String>>([])
      for (id, destination) in begun {
        let ended = await withTaskCancellationHandler {
          await resume(queue, id, destination, reports[destination], counters) { name in
            workers.withLock { _ = $0.insert(name) }
          }
        } onCancel: {
          queue.stop()
        }
        if let ended, ended.side == .cancelled || ended.side == .journal { return .success(ended) }
        first = first ?? ended
      }
      let chosen = known.filter { choice.contains($0.value) }
      try await tellFailures(of: queue, chosen, except: workers.withLock { $0 }, reports, counters)
      try await tellRest(of: queue, chosen, report, counters)
      return .success(first)
    } catch {
      report.tell(error)
      return .success(error)
    }
  }

  private func resume(
    _ queue: SharedQueue, _ id: Int64, _ destination: JournalDestination, _ report: any PushReport,
    _ counters: PushCounters, began: @escaping @Sendable (String) -> Void
  ) async -> UploadError? {
    await QueueSession.run(queue, report) { session in
      began(session.worker.name)
      do throws(UploadError) {
        let local = try await number(of: destination, in: session.journal)
        return await resume(at: destination, local, session.journal, report, counters) { begun in
          let pages = QueuePages(session, id, local: local) { () throws(JournalError) in try queue.hasWork(at: id) }
          return await begun.run.run(claiming: pages, begun.feed, begun.opener)
        }
      } catch {
        report.tell(error)
        return error
      }
    }
  }

  /// Reports the files that others could not send.
  private func tellFailures(
    of queue: SharedQueue, _ destinations: [Int64: JournalDestination], except workers: Set<String>,
    _ reports: DestinationReports, _ counters: PushCounters
  ) async throws(UploadError) {
    for (id, destination) in destinations {
      var last: Int64 = 0
      while true {
        let failures = try await queue.run { [last] queue throws(JournalError) in
          try queue.failures(at: id, after: last, limit: 1000)
        }
        for failure in failures where !workers.contains(failure.worker) {
          counters.notFound()
          reports[destination].failed(failure.source, failure.message)
        }
        guard let end = failures.last?.id else { break }
        last = end
      }
    }
  }

  /// Reports what no resume here can finish.
  private func tellRest(
    of queue: SharedQueue, _ destinations: [Int64: JournalDestination], _ report: any PushReport,
    _ counters: PushCounters
  ) async throws(UploadError) {
    let (unlisted, bound) = try await queue.run { queue throws(JournalError) in
      (try queue.unlisted(), try queue.bound())
    }
    for push in unlisted where !push.isRunning {
      guard let destination = destinations[push.destination] else { continue }
      counters.isIncomplete.store(true, ordering: .relaxed)
      report.ended(
        "a push of \(push.sources) to \(destination.endpoint) on \(push.machine) ended before all its files were known: run it "
          + "again there, which sends only what is missing")
    }
    for (machine, count) in bound where machine != queue.machine {
      counters.isIncomplete.store(true, ordering: .relaxed)
      report.ended(
        "\(Quantity.plural(Int(clamping: count), "file")) can be read on \(machine) only: run 'fullbore resume' there as well"
      )
    }
  }
}
