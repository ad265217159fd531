/// How a queue waits for items that another process is sending.
package struct OthersWait: Sendable {
  /// As `UploadQueue.waiting`.
  package var waiting: (@Sendable (_ pid: Int32) -> Void)?
  /// Sleeps between two looks at these items.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
}

/// Items of a queue that another process is sending. The journal is polled for their state.
struct OthersItems {
  private static let most = 1024
  private static let (shortest, longest) = (Duration.milliseconds(50), Duration.seconds(1))

  private let claims: ItemClaims
  private let names: ItemNames
  private let others: OthersWait
  private var items: [UploadItem] = []
  private var wait = shortest
  private var reported: Set<Int32> = []

  init(_ claims: ItemClaims, _ names: ItemNames, _ others: OthersWait) {
    (self.claims, self.names, self.others) = (claims, names, others)
  }

  var isEmpty: Bool { items.isEmpty }

  /// There are so many items that no more should be claimed before some of them become free.
  var areMany: Bool { items.count >= Self.most }

  /// Keeps the items that another process is sending, with the other files of their photos, and returns the others. Keeps
  /// none if the queue does not wait for other processes.
  mutating func setAside(_ works: [ClaimedItem]) -> [ClaimedItem] {
    guard let waiting = others.waiting else { return works }
    // Files of one photo go together, so that none of them is sent without its picture.
    let photos = Set(works.lazy.filter(\.claim.isBusy).compactMap(\.item.group?.key))
    var others: [ClaimedItem] = []
    for work in works {
      if case .busy(let owner) = work.claim {
        if reported.insert(owner.pid).inserted { waiting(owner.pid) }
      } else if let photo = work.item.group?.key, photos.contains(photo) {
        claims.release([work])
      } else {
        others.append(work)
        continue
      }
      items.append(work.item)
    }
    return others
  }

  /// Waits for a short time, and returns the items that no other process is sending by then: they are finished, or
  /// their process gave them up or died.
  mutating func freed() async throws(UploadError) -> [ClaimedItem] {
    do { try await others.sleep(wait) } catch { return [] }  // cancelled
    let asked = items
    items = []
    let freed = setAside(try await names.claimFound(asked))
    wait = freed.isEmpty ? min(wait * 2, Self.longest) : Self.shortest
    return freed
  }
}
