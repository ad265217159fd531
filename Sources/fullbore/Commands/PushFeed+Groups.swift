import BlobMedia
import BlobUpload
import Blobs

// The files of one photo get the same number, if the name of one of them is taken.
extension PushFeed {
  /// The items with their groups, and with the names of all files of a group. Lists their folders, on a thread that may
  /// block.
  func grouped(_ items: [UploadItem]) async -> [(item: UploadItem, names: [BytePath])] {
    var result = items.map { (item: $0, names: [BytePath]()) }
    // Where files get no numbers, those of one photo that are not sent do not matter.
    if !groups.isNumbering { return result }
    await earlier.read(run)
    let identities = items.map(\.identity)
    // Files of a folder that blocks have no group.
    let found: [PhotoGroups.Member?]?? = await SourceReads().each([identities]) { [photos] in photos.groups(of: $0) }?
      .first
    guard case let members?? = found else { return result }
    for (index, member) in members.enumerated() {
      if let member { result[index].item.group = member.group }
      result[index].names = member?.names ?? []
    }
    await learnNumbers(zip(result, members).map { ($0.item, $1?.main) })
    return result
  }

  /// The journal says the number of a main file that is done and no file of this run, or was one long ago. `found`: each item
  /// with the name of its main file.
  private func learnNumbers(_ found: [(item: UploadItem, main: BytePath?)]) async {
    var asked = Set(found.compactMap { $0.item.group }.filter(\.isMain).map(\.key))
    let members = found.compactMap { item, main -> (group: FileGroup, main: UploadItem)? in
      guard let group = item.group, !group.isMain, !groups.isKnown(group), asked.insert(group.key).inserted else {
        return nil
      }
      return main.flatMap { item.sibling($0, run.destination) }.map { (group, $0) }
    }
    if members.isEmpty { return }
    // If the journal cannot be read, the next claim ends the run.
    let known = try? await run.journal.numbers.done(by: members.map(\.main), run.destination)
    for (member, known) in zip(members, known ?? []) {
      guard let latest = known.max(by: { $0.entry.updated < $1.entry.updated }) else { continue }
      groups.end(member.group, at: latest.number)
      run.renamed?.note(latest.entry.intent, number: latest.number)
    }
  }

  /// The item under the number of its group. `names`: those of the group's files.
  func underGroupNumber(
    _ item: UploadItem, _ names: [BytePath], in claimed: ClaimedNames, among batch: [UploadItem]
  ) async -> UploadItem {
    guard groups.isNumbering else { return item }
    guard let group = item.group else { return underEarlierNumber(item) ?? item }
    if item.isRenamed {
      groups.note(item.numbered?.number ?? 1, of: group)
      _ = stems.take(item.stem, for: group.key)
      return item
    }
    if run.isResume {
      // The item has an entry under its name. If its group has a number, the queue replaces that entry.
      _ = stems.take(item.stem, for: group.key)
      return item
    }
    if let again = underEarlierNumber(item) {
      if let number = again.numbered?.number, group.isMain { groups.note(number, of: group) }
      // As in the earlier run, this photo has its name without a number first.
      for stem in [item.stem, again.stem] { _ = stems.take(stem, for: group.key) }
      return again
    }
    if let number = groups.number(of: group) {
      // An earlier run may have begun with the file under this name: the queue replaces that entry.
      if stems.take(item.stem, for: group.key), claimed.isFree(name(of: item), for: item.identity) { return item }
      return item.under(number, run.destination) ?? item
    }
    if stems.take(item.stem, for: group.key) {
      if Self.areRaw(names) { _ = rawStems.take(item.stem, for: Self.rawOnly) }
      return item
    }
    // Another photo has this name at the destination.
    var number = 1
    while await !isFree(number, for: item, names, in: claimed, among: batch) { number += 1 }
    guard number > 1, let numbered = item.under(number, run.destination) else {
      // The same picture is in two folders: what belongs to it here goes with it.
      stems.give(item.stem, to: group.key)
      // A third photo must not be taken for the second half of the raw files.
      if !Self.areRaw(names) { rawStems.give(item.stem, to: Self.withPictures) }
      return item
    }
    groups.note(number, of: group)
    _ = stems.take(numbered.stem, for: group.key)
    return numbered
  }

  /// The item under the number that an earlier run has given it. nil: it has given none.
  private func underEarlierNumber(_ item: UploadItem) -> UploadItem? {
    if item.isRenamed || run.isResume { return nil }
    return earlier.number(of: item).flatMap { item.under($0, run.destination) }
  }

  /// Whether no file of the group has the name of another file of this push, and no other photo has the number, unless that
  /// has the same file. Also true if there is no such number.
  private func isFree(
    _ number: Int, for item: UploadItem, _ names: [BytePath], in claimed: ClaimedNames, among batch: [UploadItem]
  ) async -> Bool {
    guard let numbered = item.under(number, run.destination) else { return true }
    // Another photo may have got it at the destination, and its other files do not have it yet.
    if number > 1, !earlier.isFree(for: numbered) { return false }
    if number > 1, let photo = item.group?.key, !stems.isFree(numbered.stem, for: photo) { return false }
    // The files of another photo may have other endings: programs would take both photos for one.
    let isOthers = item.group.map { isOfAnother(numbered.stem, $0.key, names) } ?? false
    if isOthers, claimed.isFree(name(of: numbered), for: item.identity) { return false }
    let members = names.isEmpty ? [item] : names.compactMap { item.sibling($0, run.destination) }
    for member in members {
      guard let member = member.under(number, run.destination) else { continue }
      if claimed.isFree(name(of: member), for: member.identity) { continue }
      if await clash(of: member, in: claimed, among: batch) != nil { return false }
    }
    return true
  }

  /// Whether another photo has the name. A camera with two cards writes raw files to one and pictures to the other, so raw
  /// files alone are not those of another photo. `names`: the files of the photo that asks.
  private func isOfAnother(_ stem: BytePath, _ photo: BytePath, _ names: [BytePath]) -> Bool {
    !Self.areRaw(names) && !rawStems.isTaken(stem, by: Self.rawOnly) && !stems.isFree(stem, for: photo)
  }

  /// The two owners of stems in `rawStems`.
  private static let (rawOnly, withPictures) = (BytePath("raw files"), BytePath("raw files and pictures"))

  /// Whether these are the files of a photo that is there as raw files only.
  private static func areRaw(_ names: [BytePath]) -> Bool {
    let kinds = Set(names.map { GalleryName($0.name).kind })
    return kinds.contains(.raw) && kinds.isSubset(of: [.raw, .sidecar])
  }
}

extension UploadItem {
  /// The path at the destination without what tells the files of a group apart.
  var stem: BytePath { Self.stem(of: target.plainPath, source: identity, isSealed: isSealed) }

  /// `source`: the path of the file, whose name tells an edit from its original. With a number, the name at the destination
  /// does not.
  static func stem(of path: BytePath, source: BytePath, isSealed: Bool) -> BytePath {
    let name = BytePath(path.name.bytes.dropLast(ending(of: path, isSealed: isSealed).count))
    var stem = GalleryName(name).stem.bytes
    let photo = GalleryName(source.name)
    if photo.isRendered, let own = stem.firstRange(of: photo.ownStem.bytes) {
      stem.replaceSubrange(own, with: photo.stem.bytes)
    }
    return BytePath(path.bytes.dropLast(path.name.bytes.count) + stem)
  }

  /// The bytes that follow the file's own name at the destination.
  private var ending: [UInt8] { Self.ending(of: target.plainPath, isSealed: isSealed) }

  private static func ending(of path: BytePath, isSealed: Bool) -> [UInt8] {
    isSealed && Sealing.isName(path.bytes) ? Sealing.ending.bytes : []
  }

  /// Another file of the same folder, as it would be called at the destination. nil: the layout makes other names.
  fileprivate func sibling(_ name: BytePath, _ destination: UploadDestination) -> UploadItem? {
    if name == identity.name { return self }
    let (own, other) = (Self.split(identity.name, ending), Self.split(name, ending))
    let template = (numbered ?? NumberedName(target.plainPath)).template
    let last = template.name.bytes
    guard let stem = last.firstRange(of: own.stem), last.count >= stem.upperBound + own.ending.count,
      last.suffix(own.ending.count).elementsEqual(own.ending)
    else { return nil }
    let rest = last[stem.upperBound..<(last.count - own.ending.count)]
    let path = template.bytes.dropLast(last.count) + last[..<stem.lowerBound] + other.stem + rest + other.ending
    var item = self
    item.identity = identity.folder.appending(name)
    return item.named(NumberedName(BytePath(path)), destination)
  }

  private static func split(
    _ name: BytePath, _ ending: [UInt8]
  ) -> (stem: ArraySlice<UInt8>, ending: ArraySlice<UInt8>) {
    let dot = GalleryName.endingStart(in: name.bytes)
    return (name.bytes[..<dot], name.bytes[dot...] + ending)
  }
}
