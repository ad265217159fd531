/// Deletes unfinished uploads at the server that no run goes on with.
package struct Leftovers: Sendable {
  private let destination: QueueDestination

  init(_ destination: QueueDestination) { self.destination = destination }

  /// `destinationID`: what `Journal.destinationID` returned.
  package init(_ uploader: Uploader, journal: Journal, destinationID: Int64) {
    self.init(QueueDestination(uploader, journal, destinationID))
  }

  private var journal: Journal { destination.journal }

  /// Deletes an upload on the server that another upload replaces. If the upload is complete there, it is a file, and
  /// stays. Until the server has responded, the journal keeps the entry, for the next push and for `abort`.
  ///
  /// Returns whether the journal no longer needs the entry.
  @discardableResult
  func delete(_ old: JournalEntry) async -> Bool {
    guard let session = old.sessionWithParts else { return true }
    let uploader = destination.uploader
    // This protocol cannot use a session of another one.
    guard old.destination.protocolName == uploader.destination.uploadProtocol.name else {
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

  /// Ends the uploads that earlier runs have begun under other numbers of the item's name. `status` would list them for ever:
  /// a push that finds the source goes by its new name.
  func endOtherNumbers(of item: UploadItem) async {
    // A journal that cannot be written ends the queue elsewhere.
    guard let others = try? await journal.numbers.giveUpOtherNumbers(of: item, destination.uploader.destination) else {
      return
    }
    for other in others { await delete(other) }
  }

  /// Deletes the uploads that earlier runs could not delete. Ends once the server has not deleted `most` of them, since it may
  /// be one that does not answer.
  package func deleteAll(failures most: Int = .max) async {
    guard let ids = try? await journal.leftovers(at: destination.id), !ids.isEmpty else { return }
    await delete(ids, failures: most)
  }

  /// Deletes unfinished uploads at the server and in the journal, except those that a process is sending. Uploads that
  /// are complete at the server stay there. Ends as `deleteAll` does. Returns those that the journal no longer has.
  @discardableResult
  package func delete(_ ids: [Int64], failures most: Int = .max) async -> [JournalEntry] {
    // A journal that cannot be written ends the queue elsewhere.
    guard let claims = try? await journal.claim(entries: ids) else { return [] }
    var (deleted, failures): ([JournalEntry], Int) = ([], 0)
    for case .resume(let entry) in claims {
      if Task.isCancelled || failures >= most {
        journal.released(entry.id)
      } else if await deleteClaimed(entry) {
        deleted.append(entry)
      } else {
        failures += 1
      }
    }
    return deleted
  }

  private func deleteClaimed(_ entry: JournalEntry) async -> Bool {
    if entry.sessionWithParts != nil { return await delete(entry) }
    if (try? await journal.remove([entry.id])) != nil { return true }
    journal.released(entry.id)
    return false
  }
}
