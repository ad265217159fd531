import BlobCrypto
import BlobHTTP
import Blobs

// Compares what has arrived with what was sent: by digests that the server tells of many files at once, or by reading back.
extension UploadQueue {
  /// The digest that is made of a source while it is sent, with which the upload is verified afterwards; nil: its bytes are
  /// compared. A source that can be read once has no bytes to compare later.
  func digestForVerifying(_ source: any BlobSource) -> Digest.Algorithm? {
    uploader.mayAskForDigests || source.access == .sequential ? Digest.Algorithm("xxh128") ?? .sha256 : nil
  }

  /// Compares an item, or lets it wait until its digest is asked for together with others. Returns the error after which
  /// no other item can succeed; nil: continue.
  func verify(_ sent: SentItem, _ engine: UploadEngine) async -> UploadError? {
    guard sent.result.digest != nil, uploader.mayAskForDigests else { return await readBack(sent, engine) }
    await unproved.enter()
    // The digest of a large file takes as long as those of many others, which need not wait for it.
    if isLarge(sent.work) { return await prove([sent], engine) }
    unproved.add(sent)
    return nil
  }

  /// Ends items whose content is the one that the server has on its disk, and those whose content is another one. Reads
  /// back the items of which the server tells no digest. Returns as `verify` does.
  func prove(_ items: [SentItem], _ engine: UploadEngine) async -> UploadError? {
    if items.isEmpty { return nil }
    let proofs = await uploader.proofs(
      of: items.map {
        .init(digest: $0.result.digest, algorithm: $0.algorithm, target: $0.target, location: $0.result.location)
      })
    var (ending, rest): (UploadError?, [SentItem]) = (nil, [])
    for (sent, proof) in zip(items, proofs) {
      let error: UploadError?
      switch proof {
      case .equal(let place):
        unproved.leave()
        error = await finish(sent, at: sent.result.location ?? place.description, engine)
      case .different(let difference):
        unproved.leave()
        error = await failProof(sent, difference, engine)
      case .untold:
        rest.append(sent)
        continue
      }
      ending = ending ?? error
    }
    if rest.isEmpty { return ending }
    return await withTaskGroup(of: UploadError?.self) { group in
      for sent in rest { group.addTask { await readBack(sent, engine, leaving: true) } }
      return await group.reduce(ending) { $0 ?? $1 }
    }
  }

  /// Compares all items that wait. `isStopped`: the run has ended early, so they end as an interrupted upload does.
  func proveRest(_ engine: UploadEngine, isStopped: Bool) async -> UploadError? {
    while true {
      let items = unproved.takeAll()
      if items.isEmpty { return nil }
      if !isStopped, !Task.isCancelled {
        if let error = await prove(items, engine) { return error }
        continue
      }
      for sent in items {
        unproved.leave()
        let error = UploadError(.giveUp, .cancelled, "\(sent.target.path): interrupted")
        _ = await failProof(sent, error, engine)
      }
    }
  }

  /// Reads the item back. `leaving`: it has waited for the digest.
  private func readBack(_ sent: SentItem, _ engine: UploadEngine, leaving: Bool = false) async -> UploadError? {
    let place: Result<HTTPURL, UploadError>
    do throws(UploadError) {
      place = .success(
        try await uploader.verify(sent.expected, at: sent.work.item.target, location: sent.result.location))
    } catch {
      place = .failure(error)
    }
    if leaving { unproved.leave() }
    switch place {
    case .success(let place): return await finish(sent, at: sent.result.location ?? place.description, engine)
    case .failure(let error): return await failProof(sent, error, engine)
    }
  }

  /// Ends an item that was not proved. The next run sends a file that arrived with other bytes again, since its session is
  /// finished.
  private func failProof(_ sent: SentItem, _ error: UploadError, _ engine: UploadEngine) async -> UploadError? {
    if error.saysOtherBytes { journal.restarted(sent.id) }
    return await fail(sent.work, sent.id, sent.progress, error, isStored: true, engine, sent.observer)
  }
}
