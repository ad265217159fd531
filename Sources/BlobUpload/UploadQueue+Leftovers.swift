extension UploadQueue {
  /// Deletes what the server has of an upload that another one takes the place of. An upload that is whole there is a file, and
  /// stays. Until the server has answered, the journal knows it: for the next push, and for `abort`.
  ///
  /// Returns whether the journal has no reason to remember it any more.
  @discardableResult
  func deleteLeftover(_ old: JournalEntry) async -> Bool {
    guard let session = old.sessionWithParts else { return true }
    // A session of another dialect means nothing to this one.
    guard old.destination.protocolName == uploader.destination.dialect.name else {
      journal.released(old.id)
      return true
    }
    let isWhole = await uploader.hasWhole(session)
    let isSettled = isWhole ? true : await uploader.discard(session)
    if isSettled, (try? await journal.remove([old.id])) != nil { return true }
    // A journal that cannot be written ends the queue elsewhere.
    journal.released(old.id)
    return false
  }

  /// What earlier runs could not delete.
  func deleteLeftovers() async {
    guard let ids = try? await journal.leftovers(at: destinationID), !ids.isEmpty,
      let claims = try? await journal.claim(entries: ids)
    else { return }
    for case .resume(let entry) in claims {
      if Task.isCancelled { journal.released(entry.id) } else { await deleteLeftover(entry) }
    }
  }
}
