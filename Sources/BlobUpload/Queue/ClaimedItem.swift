/// A claimed item. A class, because it is passed on several times, and an item is large.
final class ClaimedItem: Sendable {
  let item: UploadItem
  let claim: JournalClaim
  /// The progress of an item that was started before, and the number of times that it was examined again.
  let progress: UploadProgress?
  let looks: Int
  /// How many times the server has lost the item after it had said that it was stored.
  let losses: Int
  /// How many names were taken at the destination before the item got this one.
  let names: Int
  /// The observer was told that the item is sent, so it is told only of a failure after that.
  let isReported: Bool

  init(
    _ item: UploadItem, _ claim: JournalClaim, _ progress: UploadProgress? = nil, looks: Int = 0, losses: Int = 0,
    names: Int = 0, isReported: Bool = false
  ) {
    self.item = item
    self.claim = claim
    self.progress = progress
    self.looks = looks
    self.losses = losses
    self.names = names
    self.isReported = isReported
  }

  /// The entry in the journal that this process has claimed; nil: there is none.
  var entry: Int64? {
    switch claim {
    case .fresh(let id), .replaced(let id, _): id
    case .resume(let entry), .unsure(let entry): entry.id
    case .busy, .done: nil
    }
  }

  /// The entry that may be replaced by one under another name.
  var replaceable: Int64? {
    switch claim {
    case .fresh(let id): id
    case .resume(let entry), .unsure(let entry): entry.id
    case .replaced, .busy, .done: nil
    }
  }

  /// The upload that an earlier run has begun.
  var session: UploadSession? {
    switch claim {
    case .resume(let entry), .unsure(let entry): entry.session
    case .fresh, .replaced, .busy, .done: nil
    }
  }

  /// The same claim of a changed item.
  func with(_ item: UploadItem) -> ClaimedItem {
    ClaimedItem(item, claim, progress, looks: looks, losses: losses, names: names, isReported: isReported)
  }
}
