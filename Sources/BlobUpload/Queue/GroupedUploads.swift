import BlobHTTP
import Blobs
import Synchronization

/// The groups of which the server has some members and does not publish them yet.
///
/// A member counts as sent once the server has published its group, which the response to the last member says.
final class GroupedUploads: Sendable {
  private struct Group {
    /// Members that wait at the server.
    var waiting: [SentItem] = []
    /// How many members have ended, or wait at the server.
    var ended = 0
    /// The first member that has failed, and why.
    var failure: (file: BytePath, error: UploadError)?
    /// The server has said that it has published all members.
    var isPublished = false
    /// The server was told anew which members are left.
    var isTold = false
  }
  /// By the ids of the groups without numbers: a group keeps its place here when its files get numbers.
  private let groups = Mutex<[String: Group]>([:])
  let plan: GroupPlan

  init(_ destination: QueueDestination) { plan = GroupPlan(destination: destination) }

  /// Keeps an item that the server has, and has not published yet. Returns false for others.
  func holds(_ sent: SentItem) -> Bool {
    guard sent.result.group == .waiting, let group = sent.work.item.target.group else { return false }
    let waits = groups.withLock { groups in
      // The response to the last member may be the first to be read.
      if groups[group.plainID]?.isPublished == true { return false }
      groups[group.plainID, default: Group()].waiting.append(sent)
      return true
    }
    if waits { sent.work.item.source.closeUntilNeeded() }
    return waits
  }

  /// The items that the server has published together with this one.
  func takePublished(with sent: SentItem) -> [SentItem] {
    guard sent.result.group == .published, let group = sent.work.item.target.group else { return [] }
    return groups.withLock { groups in
      let waiting = groups[group.plainID]?.waiting ?? []
      groups[group.plainID, default: Group()].waiting = []
      groups[group.plainID]?.isPublished = true
      return waiting
    }
  }

  func note(_ failure: UploadError, of item: UploadItem) {
    guard let group = item.target.group else { return }
    groups.withLock { groups in
      guard groups[group.plainID]?.failure == nil else { return }
      groups[group.plainID, default: Group()].failure = (item.identity, failure)
    }
  }

  /// Called after each member. After the last one, items may still wait, if the server has published other members in an
  /// earlier run: these are returned, in a group of their own. If a member has failed, they fail too.
  func end(_ work: ClaimedItem, in items: ItemSender) async -> [ClaimedItem] {
    guard let place = work.item.target.group else { return [] }
    let ended = groups.withLock { groups -> Group? in
      groups[place.plainID, default: Group()].ended += 1
      return groups[place.plainID]?.ended == place.members ? groups.removeValue(forKey: place.plainID) : nil
    }
    guard let ended, !ended.waiting.isEmpty else { return [] }
    let waiting = ended.waiting.sorted { ($0.position, $0.id) < ($1.position, $1.id) }
    if let failure = ended.failure {
      for sent in waiting { await fail(sent, after: failure, in: items) }
      return []
    }
    // Each time it is told of fewer, since the others turned out to be published, as after a kill of the server.
    if ended.isTold, waiting.count == place.members {
      for sent in waiting { await fail(sent, after: nil, in: items) }
      return []
    }
    var again: [ClaimedItem] = []
    for sent in waiting {
      if let claimed = await items.claims.claimWaiting(sent) {
        again.append(claimed)
      } else {
        await fail(sent, after: nil, in: items)
      }
    }
    again = plan.grouping(again)
    if let id = again.first?.item.target.group?.plainID { groups.withLock { $0[id, default: Group()].isTold = true } }
    return again
  }

  private func fail(
    _ sent: SentItem, after failure: (file: BytePath, error: UploadError)?, in items: ItemSender
  ) async {
    let count = sent.work.item.target.group?.members ?? 0
    let message =
      failure.map {
        "the server waits with it for \($0.file), which was not sent: none of the files of one photo appears alone"
      }
      ?? "the server has it, and says that it waits for others of the \(count) files of its photo"
    var error = UploadError(.giveUp, failure?.error.side ?? .file, message, status: failure?.error.status)
    error.cause = failure?.error.cause
    _ = await items.end(sent.work, sent.id, sent.progress, error)
  }

  /// The run ends early: the next one asks the server for what waits there.
  func drop(in items: ItemSender) {
    let left = groups.withLock { groups in
      defer { groups = [:] }
      return groups.values.flatMap(\.waiting)
    }
    for sent in left {
      items.claims.release([sent.work])
      items.tell(sent.work, sent.progress, .failed(UploadError(.giveUp, .cancelled, "interrupted")))
    }
  }
}

extension SentItem {
  fileprivate var position: Int { work.item.target.group?.position ?? 0 }
}
