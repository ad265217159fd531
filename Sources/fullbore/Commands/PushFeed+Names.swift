import BlobUpload
import Blobs

extension PushFeed {
  /// Removes items whose name another file of this push already has, whatever the options: sending both would lose one
  /// of the two. The other files of their photo are removed with them: programs would take these for files of the photo
  /// that has the name. `items`: the files of a photo are all among them.
  func withOwnNames(_ items: [UploadItem]) async -> [UploadItem] {
    var clashes = await replacingOnlyCopies(items)
    var kept = items.filter { item in !clashes.contains { $0.item.identity == item.identity } }
    if let names {
      let named = await named(kept, in: names)
      kept = named.kept
      clashes += named.clashes
    }
    if clashes.isEmpty { return kept }
    let others = await othersOfPhotos(clashes, in: kept)
    kept.removeAll { item in others.contains { $0.item.identity == item.identity } }
    await refuse(clashes + others)
    return kept
  }

  /// The items that have names of their own, and those whose names other files of this push have.
  private func named(
    _ items: [UploadItem], in names: ClaimedNames
  ) async -> (kept: [UploadItem], clashes: [(item: UploadItem, clash: NameClash)]) {
    var kept: [UploadItem] = []
    var clashes: [(item: UploadItem, clash: NameClash)] = []
    for (found, members) in await grouped(items) {
      var item = await underGroupNumber(found, members, in: names, among: kept)
      let name = name(of: item)
      if !names.take(name, for: item.identity) {
        switch await sharing(of: item, in: names, among: kept) {
        case .other(let clash):
          if run.settings.onConflict == .rename, let own = await ownName(for: item, in: names, among: kept) {
            kept.append(own)
            continue
          }
          // The queue finds it where an earlier push has sent it.
          if await isDone(item) {
            kept.append(item)
            continue
          }
          clashes.append((item, clash))
          continue
        case .twin(let twin):
          // What is sealed has another ciphertext, of which the journal keeps the digest.
          if item.target.overwrite, item.sealed == nil { item.twin = twin }
          names.give(name, to: item.identity)
        case .none: names.give(name, to: item.identity)
        }
      }
      kept.append(item)
    }
    return (kept, clashes)
  }

  /// The items that would replace the only copy of a file that was deleted here.
  private func replacingOnlyCopies(_ items: [UploadItem]) async -> [(item: UploadItem, clash: NameClash)] {
    let items = items.filter(\.target.overwrite)
    // If the journal cannot be read, the next claim ends the push.
    guard !items.isEmpty, let known = try? await run.journal.deletedSources(at: items.map { $0.intent() }),
      known.contains(where: { !$0.isEmpty })
    else { return [] }
    let lost = await SourceReads().each(Array(zip(items, known))) { item, sources in
      // Another file has the path of a deleted one.
      sources.first { $0 == item.identity || $0.isMissing }
    }
    return zip(items, lost ?? []).compactMap { item, other in
      guard case let other?? = other else { return nil }
      let clash = NameClash(
        of: item.identity, withOnlyCopyOf: other, dropsFolders: run.destination.traits.dropsFolders)
      return (item, clash)
    }
  }

  /// The items that belong to the photo of a file whose name is taken, except those that an earlier push has sent. Files that
  /// get numbers have the number of their photo.
  private func othersOfPhotos(
    _ clashes: [(item: UploadItem, clash: NameClash)], in kept: [UploadItem]
  ) async -> [(item: UploadItem, clash: NameClash)] {
    if groups.isNumbering { return [] }
    var photos: [BytePath: NameClash] = [:]
    for (item, clash) in clashes {
      if let photo = item.group?.key, photos[photo] == nil { photos[photo] = clash }
    }
    var others: [(item: UploadItem, clash: NameClash)] = []
    for item in kept {
      guard let photo = item.group?.key, let clash = photos[photo], await !isDone(item) else { continue }
      others.append((item, clash.forOther(item.identity)))
    }
    return others
  }

  private func refuse(_ clashes: [(item: UploadItem, clash: NameClash)]) async {
    let isSkipped = run.settings.onConflict == .skip
    for (item, clash) in clashes { refused(item, clash.error(isSkipped: isSkipped)) }
    if !isSkipped { await note(clashes.map { ($0.item, $0.clash.message) }) }
  }

  /// Whether an earlier push has sent this version of the file under its name or under one with a number.
  private func isDone(_ item: UploadItem) async -> Bool {
    if item.target.overwrite || run.destination.traits.recipient != nil { return false }
    // If the journal cannot be read, the next claim ends the push.
    let known = try? await run.journal.numbers.done(by: [item], run.destination)
    return item.number(among: known?.first ?? []) != nil
  }

  /// The item under the next name that no other file of this push has, or only one with the same bytes. nil: there are too
  /// many files of one name.
  private func ownName(for item: UploadItem, in names: ClaimedNames, among batch: [UploadItem]) async -> UploadItem? {
    var item = item
    while let next = item.underNextName(run.destination) {
      item = next
      if !isFreeOfPhotos(item) { continue }
      if names.take(name(of: item), for: item.identity) { return item }
      if await clash(of: item, in: names, among: batch) == nil {
        names.give(name(of: item), to: item.identity)
        return item
      }
    }
    return nil
  }

  /// The item under the next name that no other file and no other photo of this push has, for one whose name is taken at the
  /// destination. nil: it has no other name.
  func renamed(_ item: UploadItem) -> UploadItem? {
    var item = item
    while let next = item.underNextName(run.destination) {
      item = next
      if !isFreeOfPhotos(item) { continue }
      if names?.take(name(of: item), for: item.identity) != false { return item }
    }
    return nil
  }

  /// Whether no other photo has the number of an item, in this run or in an earlier one. Then it is this photo's.
  private func isFreeOfPhotos(_ item: UploadItem) -> Bool {
    guard groups.isNumbering else { return true }
    return earlier.isFree(for: item) && item.group.map { stems.take(item.stem, for: $0.key) } ?? true
  }

  /// Records in the journal which files are not sent, and why, so that `status` and `resume` list them.
  private func note(_ clashes: [(item: UploadItem, message: String)]) async {
    let intents = clashes.map { item, _ in item.intent() }
    do throws(JournalError) {
      let claims = try await run.journal.claim(intents, destination: run.destinationID, sends: false)
      for (claim, clash) in zip(claims, clashes) {
        switch claim {
        case .fresh(let id), .replaced(let id, _): run.journal.refused(id, clash.message)
        case .resume(let entry), .unsure(let entry): run.journal.refused(entry.id, clash.message)
        // The file was sent under that name before, or another process is sending it.
        case .done, .busy: break
        }
      }
    } catch {
      // The next claim of this push fails for the same reason and ends the push; until then the journal does not know
      // these files.
      run.counters.isIncomplete.store(true, ordering: .relaxed)
    }
  }

  /// nil: no other file of this push has the name of `item` and other bytes.
  func clash(
    of item: UploadItem, in names: ClaimedNames, among batch: [UploadItem]
  ) async -> NameClash? {
    if case .other(let clash) = await sharing(of: item, in: names, among: batch) { clash } else { nil }
  }

  /// What other files of a push have the name of a file.
  private enum NameSharing {
    case none
    /// This one, which has the same bytes.
    case twin(BytePath)
    /// One with other bytes.
    case other(NameClash)
  }

  private func sharing(
    of item: UploadItem, in names: ClaimedNames, among batch: [UploadItem]
  ) async -> NameSharing {
    let (name, dropsFolders) = (name(of: item), run.destination.traits.dropsFolders)
    var others = batch.filter { self.name(of: $0) == name }.map(\.identity)
    // The files of earlier batches and earlier pushes are in the journal. If it cannot be read, the next claim ends the
    // push.
    if dropsFolders {
      let known = try? await run.journal.uploads(to: run.destinationID) { $0.path.name == name }
      others += known?.map(\.source) ?? []
    } else {
      others += (try? await run.journal.sources(at: item.intent())) ?? []
    }
    var sharing = NameSharing.none
    for other in others where other != item.identity && names.isTaken(name, by: other) {
      if Task.isCancelled { return .none }
      let clash = await NameClash(
        of: item.identity, with: other, dropsFolders: dropsFolders, replaces: item.target.overwrite)
      if let clash { return .other(clash) }
      // A comparison that was cancelled says nothing.
      if Task.isCancelled { return .none }
      sharing = .twin(other)
    }
    return sharing
  }

  /// The name that the receiver is told.
  func name(of item: UploadItem) -> BytePath {
    run.destination.traits.dropsFolders ? item.target.plainPath.name : item.target.plainPath
  }
}

extension UploadItem {
  /// nil: there are too many files of one name.
  fileprivate func underNextName(_ destination: UploadDestination) -> UploadItem? {
    under((numbered?.number ?? 1) + 1, destination)
  }
}
