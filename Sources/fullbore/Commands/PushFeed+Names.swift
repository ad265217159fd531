import BlobUpload
import Blobs

extension PushFeed {
  /// The items without those whose name another file of this push has, whatever the options: to send them would lose
  /// one of the two.
  func withOwnNames(_ items: [UploadItem]) async -> [UploadItem] {
    guard let names else { return items }
    var kept: [UploadItem] = []
    for item in items {
      if !names.take(item.target.path, for: item.identity) {
        if let clash = await clash(of: item, in: names, among: kept) {
          run.counters.isIncomplete.store(true, ordering: .relaxed)
          refused(item, UploadError(.giveUp, .file, clash.message))
          continue
        }
        names.give(item.target.path, to: item.identity)
      }
      kept.append(item)
    }
    return kept
  }

  /// nil: no other file, with other bytes, has the name of `item` in this push.
  private func clash(
    of item: UploadItem, in names: TakenNames, among batch: [UploadItem]
  ) async -> NameClash? {
    var others = batch.filter { $0.target.path == item.target.path }.map(\.identity)
    // What earlier batches have is in the journal, and so is what earlier pushes have sent. One that cannot be read ends
    // the push at the next claim.
    others += (try? await run.journal.sources(of: item.target.url.description)) ?? []
    for other in others where names.isTaken(item.target.path, by: other) {
      if Task.isCancelled { return nil }
      if let clash = await NameClash(of: item.identity, with: other) { return clash }
    }
    return nil
  }
}
