import Blobs

extension UploadQueue {
  /// A file that was sent before and has grown since, as one does whose writer had paused: it may replace what it was,
  /// if the server still has exactly that. Then nothing is lost that the new version does not have.
  func replacing(_ old: JournalEntry, by work: Claimed) async -> Claimed {
    var item = work.item
    guard replacesGrown, !item.target.overwrite, old.state == .done, item.source.access == .random,
      let before = old.intent.length, let now = item.info.length, before < now, item.info.validator != nil
    else { return work }
    do {
      // Nothing but the bytes tells whether anyone else has written there since.
      try await uploader.verify(
        item.source, BlobInfo(length: before, validator: item.info.validator), at: item.target)
    } catch {
      // The server refuses the name, as it does for any other bytes, and that is told.
      return work
    }
    item.target.overwrite = true
    return Claimed(item, work.claim, work.progress, looks: work.looks)
  }
}
