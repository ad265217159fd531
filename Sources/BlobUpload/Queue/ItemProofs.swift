import BlobCrypto
import BlobHTTP
import Blobs

/// Compares what has arrived with what was sent: by digests that the server tells of many files at once, or by reading back.
final class ItemProofs: Sendable {
  private let destination: QueueDestination
  private let concurrency: QueueConcurrency
  /// As `UploadQueue.verify`.
  let verifies: Bool
  /// Files that have not been compared yet.
  let unproved: SentItems

  init(_ queue: UploadQueue, _ destination: QueueDestination) {
    self.destination = destination
    (concurrency, verifies) = (queue.concurrency, queue.verify)
    unproved = SentItems(queue.uploader.clock, senders: max(1, queue.jobs))
  }

  /// The digest that is made of a source while it is sent, with which the upload is verified afterwards; nil: its bytes are
  /// compared, or nothing is verified. A source that can be read once has no bytes to compare later.
  func digest(of source: any BlobSource) -> Digest.Algorithm? {
    guard verifies, destination.uploader.mayAskForDigests || source.access == .sequential else { return nil }
    return Digest.Algorithm("xxh128") ?? .sha256
  }

  /// Compares an item, or lets it wait until its digest is asked for together with others. Returns the error after which
  /// no other item can succeed; nil: continue.
  func verify(_ sent: SentItem, in items: ItemSender) async -> UploadError? {
    guard sent.result.digest != nil, destination.uploader.mayAskForDigests else {
      return await readBack(sent, in: items)
    }
    await unproved.enter()
    // The digest of a large file takes as long as those of many others, which need not wait for it.
    if concurrency.isLarge(sent.work) { return await prove([sent], in: items) }
    unproved.add(sent)
    return nil
  }

  /// Ends items whose content is the one that the server has on its disk, and those whose content is another one. Reads
  /// back the items of which the server tells no digest. Returns as `verify` does.
  func prove(_ batch: [SentItem], in items: ItemSender) async -> UploadError? {
    if batch.isEmpty { return nil }
    let proofs = await destination.uploader.proofs(
      of: batch.map {
        .init(digest: $0.result.digest, algorithm: $0.algorithm, target: $0.target, location: $0.result.location)
      })
    var (ending, rest): (UploadError?, [SentItem]) = (nil, [])
    for (sent, proof) in zip(batch, proofs) {
      let error: UploadError?
      switch proof {
      case .equal(let place):
        unproved.leave()
        error = await items.finish(sent, at: sent.result.location ?? place.description)
      case .different(let difference):
        unproved.leave()
        error = await fail(sent, difference, in: items)
      case .untold:
        rest.append(sent)
        continue
      }
      ending = ending ?? error
    }
    if rest.isEmpty { return ending }
    return await withTaskGroup(of: UploadError?.self) { group in
      for sent in rest { group.addTask { await self.readBack(sent, in: items, leaving: true) } }
      return await group.reduce(ending) { $0 ?? $1 }
    }
  }

  /// Compares all items that wait. `isStopped`: the run has ended early, so they end as an interrupted upload does.
  func proveRest(in items: ItemSender, isStopped: Bool) async -> UploadError? {
    while true {
      let batch = unproved.takeAll()
      if batch.isEmpty { return nil }
      if !isStopped, !Task.isCancelled {
        if let error = await prove(batch, in: items) { return error }
        continue
      }
      for sent in batch {
        unproved.leave()
        let error = UploadError(.giveUp, .cancelled, "\(sent.target.path): interrupted")
        _ = await fail(sent, error, in: items)
      }
    }
  }

  /// Reads the item back. `leaving`: it has waited for the digest.
  private func readBack(_ sent: SentItem, in items: ItemSender, leaving: Bool = false) async -> UploadError? {
    let place: Result<HTTPURL, UploadError>
    do throws(UploadError) {
      place = .success(
        try await destination.uploader.verify(sent.expected, at: sent.work.item.target, location: sent.result.location))
    } catch {
      place = .failure(error)
    }
    if leaving { unproved.leave() }
    switch place {
    case .success(let place): return await items.finish(sent, at: sent.result.location ?? place.description)
    case .failure(let error): return await fail(sent, error, in: items)
    }
  }

  /// Ends an item that was not proved. The next run sends a file that arrived with other bytes again, since its session is
  /// finished.
  private func fail(_ sent: SentItem, _ error: UploadError, in items: ItemSender) async -> UploadError? {
    if error.saysOtherBytes { destination.journal.restarted(sent.id) }
    return await items.fail(sent.work, sent.id, sent.progress, error, isStored: true)
  }
}
