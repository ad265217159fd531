import Blobs

/// The rules by which the items of a queue get their names.
package struct NamingRules: Sendable {
  /// The end of an item whose name has other bytes at the destination.
  package enum TakenName: Sendable {
    /// The item fails.
    case fail
    /// The item is not recorded in the journal, and its outcome is the failure.
    case leaveOut
    /// The item is sent as the one that this returns; nil: it fails.
    case rename(@Sendable (UploadItem) -> UploadItem?)
  }
  package var taken = TakenName.fail
  /// Sends the files of one photo in an order, with the same number; nil: each goes by itself.
  package var groups: GroupNumbers?
}

/// Gives items other names where theirs are taken at the destination, or where an earlier run has done so.
final class ItemNames: Sendable {
  private let destination: QueueDestination
  private let claims: ItemClaims
  private let rules: NamingRules

  init(_ destination: QueueDestination, _ claims: ItemClaims, _ rules: NamingRules) {
    (self.destination, self.claims, self.rules) = (destination, claims, rules)
  }

  /// As `NamingRules.groups`.
  var groups: GroupNumbers? { rules.groups }

  private static let mostNames = 100

  /// Returns the item under another name if `error` says that its name is taken; nil: it fails.
  func underNextName(
    _ work: ClaimedItem, _ id: Int64, _ progress: UploadProgress, _ error: UploadError
  ) async -> ClaimedItem? {
    guard case .rename(let next) = rules.taken, error.isNameTaken, work.item.source.access == .random else {
      return nil
    }
    var (item, names) = (work.item, work.names)
    while names < Self.mostNames, let again = next(item), await discardSession(of: id),
      // A journal that cannot be written ends the queue at the next item. This item keeps its entry and reports its own
      // error.
      let claimed = try? await claims.claim([again], insteadOf: id).first
    {
      (item, names) = (again, names + 1)
      // Another process is sending another file to this name. The item still has its entry.
      if claimed.claim.isBusy { continue }
      if let group = item.group { groups?.note(item.numbered?.number ?? 1, of: group) }
      progress.restart()
      return ClaimedItem(
        inGroupOfNumber(item), claimed.claim, progress, looks: work.looks, names: names, isReported: work.isReported)
    }
    return nil
  }

  /// The item under the number that the main file of its group has got since the item was claimed, else the same.
  func underGroupNumber(_ work: ClaimedItem) async -> ClaimedItem {
    let work = work.with(inGroupOfNumber(work.item))
    guard work.replaceable != nil, let again = groups?.numbered(work.item) else { return work }
    return await claimed(again, insteadOf: work)
  }

  /// The item in the group that the server is told for the files of its photo under this number. Under the names without it,
  /// files of an earlier run may wait there.
  private func inGroupOfNumber(_ item: UploadItem) -> UploadItem {
    guard let group = item.group, let number = groups?.number(of: group) else { return item }
    var item = item
    item.target.group = item.target.group?.numbered(number)
    return item
  }

  /// The same if the entry cannot be replaced: then the file keeps its name, and the run names it at its end. Busy if another
  /// process is sending to the name.
  private func claimed(_ item: UploadItem, insteadOf work: ClaimedItem) async -> ClaimedItem {
    guard let id = work.replaceable, await discardSession(of: id),
      let claimed = try? await claims.claim([item], insteadOf: id).first
    else { return work }
    if claimed.claim.isBusy { claims.release([work]) }
    return ClaimedItem(
      item, claimed.claim, work.progress, looks: work.looks, names: work.names, isReported: work.isReported)
  }

  /// Whether earlier runs of this journal, or other processes, may have sent files under names with numbers.
  private func knowsNumbers() async throws(UploadError) -> Bool {
    // The receiver of a form decides on names.
    if destination.traits.recipient != nil { return false }
    if groups?.isNumbering == true { return true }
    do { return try await destination.journal.destinations().contains { $0.renames == true } } catch {
      throw UploadError(journal: error)
    }
  }

  /// Claims items of the feed. A file that an earlier run has sent under a name with a number gets that name, so that it is
  /// not sent twice, also where this run gives no other names. One that another process sends under such a name is busy.
  func claimFound(_ items: [UploadItem]) async throws(UploadError) -> [ClaimedItem] {
    var works = try await claims.claim(items)
    // A file that may replace other bytes is wanted under its own name.
    let open = works.indices.filter { works[$0].replaceable != nil && !works[$0].item.target.overwrite }
    guard !open.isEmpty, try await knowsNumbers() else { return works }
    let place = destination.uploader.destination
    let known: [JournalNumbers.Known]
    do {
      known = try await destination.journal.numbers.known(by: open.map { works[$0].item }, place)
    } catch {
      throw UploadError(journal: error)
    }
    for (index, known) in zip(open, known) {
      let item = works[index].item
      if let sender = known.sender {
        claims.release([works[index]])
        works[index] = ClaimedItem(item, .busy(sender))
        continue
      }
      guard let number = item.number(among: known.done), number != item.numbered?.number ?? 1,
        let again = item.under(number, place)
      else { continue }
      works[index] = await claimed(again, insteadOf: works[index])
    }
    return works
  }

  /// Whether the item is to be left out, and the journal has no trace of it any more.
  func isLeftOut(_ id: Int64, _ error: UploadError) async -> Bool {
    guard case .leaveOut = rules.taken, error.isNameTaken else { return false }
    guard await discardSession(of: id) else { return false }
    do { try await destination.journal.remove([id]) } catch { return false }
    return true
  }

  /// Returns true once the server has nothing of an upload, so that its entry may be removed.
  private func discardSession(of id: Int64) async -> Bool {
    guard let entry = try? await destination.journal.unfinished(after: id - 1, limit: 1).first, entry.id == id else {
      return false
    }
    if let session = entry.sessionWithParts {
      guard await !destination.uploader.hasWhole(session), await destination.uploader.discard(session) else {
        return false
      }
    }
    return true
  }
}
