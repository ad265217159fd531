import BlobHTTP
import Blobs

/// One run of a queue: claims the items of a feed, and hands them to the tasks that send them. The first error after which
/// no other item can succeed stops it.
final class QueueRun: Sendable {
  private let destination: QueueDestination
  private let concurrency: QueueConcurrency
  private let others: OthersWait
  private let groups: GroupNumbers?
  private let items: ItemSender
  private let channel = BatchChannel<ClaimedItem>(ahead: 2)
  private let large: Gate
  private let fatal = FirstError()

  init(_ queue: UploadQueue, _ observer: any UploadObserver) {
    destination = QueueDestination(queue.uploader, queue.journal, queue.destinationID)
    (concurrency, others, groups) = (queue.concurrency, queue.others, queue.naming.groups)
    items = ItemSender(queue, destination, observer)
    large = Gate(queue.largeJobs)
  }

  /// As `UploadQueue.run`. Called once.
  func send(_ feed: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?) async throws(UploadError) {
    let host = HostRecord(destination: destination)
    try await host.recall()
    // A few extra items wait, so that the transport can detect whether more concurrency would help.
    (destination.uploader.transport as? any AdaptiveTransport)?.follow { [large, most = concurrency.largeJobs] in
      large.widen(to: max(most, $0 + 4))
    }
    await runTasks(feed)
    items.claims.release(groups?.drop() ?? [])
    items.grouped.drop(in: items)
    if fatal.error == nil, !Task.isCancelled { await destination.leftovers.deleteAll() }
    try await destination.flush()
    // A second response to the last request on a connection has had some time to arrive.
    await items.doubtful.recent.checkConnections()
    if fatal.error != nil || Task.isCancelled {
      items.doubtful.leave()
    } else if let error = await items.doubtful.send(in: items) {
      stop(error)
    }
    await proveRest()
    try await destination.flush()
    // Losing this value is harmless: the next run measures again.
    try? await host.remember()
    if let error = fatal.error { throw error }
    if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
    if let error = destination.state.refusalOfAll { throw error }
  }

  private func runTasks(_ feed: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?) async {
    await withTaskGroup(of: Void.self) { group in
      if let question = destination.uploader.destination.question {
        question.open()
        // With one connection, the query cannot run beside the first item.
        if concurrency.jobs == 1 {
          await question.ask(stop)
        } else {
          group.addTask { await question.ask(self.stop) }
        }
      }
      group.addTask { await self.claimItems(of: feed) }
      // Results of worker threads are processed on one thread: waking another thread costs more than the work itself.
      let executor = ThreadExecutor("fullbore-queue")
      for _ in 0..<max(1, concurrency.jobs) {
        group.addTask(executorPreference: executor) { await self.sendItems() }
      }
      if items.proofs.verifies {
        group.addTask {
          await self.items.proofs.unproved.eachMoment {
            if let error = await self.items.proofs.prove(self.items.proofs.unproved.takeAll(), in: self.items) {
              self.stop(error)
            }
          }
        }
      }
      // Tasks that wait at the gate do not notice a fatal error elsewhere, so they are cancelled here.
      for await _ in group where fatal.error != nil { group.cancelAll() }
      withExtendedLifetime(executor) {}
    }
  }

  private func stop(_ error: UploadError) {
    fatal.keep(error)
    items.claims.release(channel.drop() + (groups?.drop() ?? []))
  }

  private var goesOn: Bool { fatal.error == nil && !Task.isCancelled }

  private func proveRest() async {
    if let error = await items.proofs.proveRest(in: items, isStopped: fatal.error != nil) { stop(error) }
  }
}

// The task that claims items.
extension QueueRun {
  private func claimItems(of feed: @Sendable () async throws(UploadError) -> [UploadItem]?) async {
    var others = OthersItems(items.claims, items.names, others)
    do throws(UploadError) {
      while let found = try await feed(), goesOn {
        try await hand(on: others.setAside(try await items.names.claimFound(found)))
        while others.areMany, goesOn { try await hand(on: try await others.freed()) }
      }
      while !others.isEmpty, goesOn { try await hand(on: try await others.freed()) }
      if let groups { try await hand(on: groups.takeUnseen()) }
      channel.finish()
    } catch {
      stop(error)
    }
  }

  private func hand(on works: [ClaimedItem]) async throws(UploadError) {
    if works.isEmpty { return }
    do { try await items.seals.makeSeals(works) } catch {
      items.claims.release(works)
      throw error
    }
    let works = concurrency.smallFirst(items.grouped.plan.inGroups(works))
    groups?.begin(works)
    if await !channel.send(works) { items.claims.release(works) }
  }
}

// The tasks that send items, one after the other.
extension QueueRun {
  private func sendItems() async {
    while let work = await channel.next() {
      var next = [work][...]
      while let work = next.popFirst() {
        if groups?.keepsWaiting(work) == true { continue }
        let error =
          concurrency.isLarge(work) ? await large.pass { await items.handle(work) } : await items.handle(work)
        if let error { stop(error) }
        if let error = await items.proofs.prove(items.proofs.unproved.takeBatch(), in: items) { stop(error) }
        if work.item.group == nil, work.item.target.group == nil { continue }
        let members = (groups?.end(work) ?? []) + (await items.grouped.end(work, in: items))
        if fatal.error == nil { next += members } else { items.claims.release(members) }
      }
    }
    await proveRest()
    items.proofs.unproved.endSender()
  }
}
