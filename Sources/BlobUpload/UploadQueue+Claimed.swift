extension UploadQueue {
  /// A claimed item. A class, because it is passed on several times, and an item is large.
  final class Claimed: Sendable {
    let item: UploadItem
    let claim: JournalClaim
    /// The progress of an item that was started before, and the number of times that it was examined again.
    let progress: UploadProgress?
    let looks: Int
    /// How many times the server has lost the item after it had said that it was stored.
    let losses: Int
    /// How many names were taken at the destination before the item got this one.
    let names: Int

    init(
      _ item: UploadItem, _ claim: JournalClaim, _ progress: UploadProgress? = nil, looks: Int = 0, losses: Int = 0,
      names: Int = 0
    ) {
      self.item = item
      self.claim = claim
      self.progress = progress
      self.looks = looks
      self.losses = losses
      self.names = names
    }

    /// The entry in the journal that this process has claimed; nil: there is none.
    var entry: Int64? {
      switch claim {
      case .fresh(let id), .replaced(let id, _): id
      case .resume(let entry), .unsure(let entry): entry.id
      case .busy, .done: nil
      }
    }

    /// The same claim of a changed item.
    func with(_ item: UploadItem) -> Claimed {
      Claimed(item, claim, progress, looks: looks, losses: losses, names: names)
    }
  }
}
