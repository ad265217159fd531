/// Claims items in the journal before they are sent, and gives claims back.
struct ItemClaims {
  let destination: QueueDestination
  /// As `UploadQueue.replacesGrown`.
  let replacesGrown: Bool

  /// `insteadOf`: the entry that the first item replaces, as in `Journal.claim`.
  func claim(
    _ items: [UploadItem], again: Bool = false, insteadOf old: Int64? = nil
  ) async throws(UploadError) -> [ClaimedItem] {
    let uploader = destination.uploader
    let intents = items.map { item in
      var intent = item.intent(partSize: uploader.partSize)
      if item.isRenamed { intent.unnumberedKey = item.under(1, uploader.destination)?.intent().key }
      return intent
    }
    do {
      let claims = try await destination.journal.claim(
        intents, destination: destination.id, again: again, replacesGrown: replacesGrown, insteadOf: old)
      let works = zip(items, claims).map { ClaimedItem($0, $1) }
      OverwriteGuard(destination: destination).noteStored(works)
      return works
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// The item, which waits at the server, with the claim of its entry as it is now. nil: the journal cannot be written.
  func claimWaiting(_ sent: SentItem) async -> ClaimedItem? {
    destination.journal.released(sent.id)
    guard let claimed = try? await claim([sent.work.item]).first else { return nil }
    return ClaimedItem(
      claimed.item, claimed.claim, sent.progress, looks: sent.work.looks, losses: sent.work.losses,
      names: sent.work.names, isReported: sent.work.isReported)
  }

  /// Releases claimed items, so that other processes need not wait for this process to end.
  func release(_ works: [ClaimedItem]) {
    for work in works {
      switch work.claim {
      case .fresh(let id), .replaced(let id, _): destination.journal.released(id)
      case .resume(let entry), .unsure(let entry), .done(let entry): destination.journal.released(entry.id)
      case .busy: break
      }
    }
  }
}
