import BlobMedia
import BlobUpload
import Blobs

// The files of one photo get the same number, if the name of one of them is taken.
extension PushFeed {
  /// The items with their groups, and with the names of all files of a group. Lists their folders, on a thread that may
  /// block.
  func grouped(_ items: [UploadItem]) async -> [(item: UploadItem, names: [BytePath])] {
    var result = items.map { (item: $0, names: [BytePath]()) }
    if groups == nil { return result }
    let identities = items.map(\.identity)
    // Files of a folder that blocks have no group.
    let found: [PhotoGroups.Member?]?? = await SourceReads().each([identities]) { [photos] in photos.groups(of: $0) }?
      .first
    guard case let members?? = found else { return result }
    for (index, member) in members.enumerated() {
      result[index].item.group = member?.group
      result[index].names = member?.names ?? []
    }
    return result
  }

  /// The item under the number of its group. `names`: those of the group's files.
  func underGroupNumber(
    _ item: UploadItem, _ names: [BytePath], in claimed: ClaimedNames, among batch: [UploadItem]
  ) async -> UploadItem {
    guard let groups, let group = item.group else { return item }
    if item.isRenamed {
      groups.note(item.numbered?.number ?? 1, of: group)
      return item
    }
    if let number = groups.number(of: group) { return item.under(number, run.destination) ?? item }
    if stems.take(item.stem, for: group.key) { return item }
    // Another photo has this name at the destination.
    var number = 1
    while await !isFree(number, for: item, names, in: claimed, among: batch) { number += 1 }
    guard number > 1, let numbered = item.under(number, run.destination) else { return item }
    groups.note(number, of: group)
    _ = stems.take(numbered.stem, for: group.key)
    return numbered
  }

  /// Whether no file of the group has the name of another file of this push. Also true if there is no such number.
  private func isFree(
    _ number: Int, for item: UploadItem, _ names: [BytePath], in claimed: ClaimedNames, among batch: [UploadItem]
  ) async -> Bool {
    guard item.under(number, run.destination) != nil else { return true }
    let members = names.isEmpty ? [item] : names.compactMap { item.sibling($0, run.destination) }
    for member in members {
      guard let member = member.under(number, run.destination) else { continue }
      if claimed.isFree(name(of: member), for: member.identity) { continue }
      if await clash(of: member, in: claimed, among: batch) != nil { return false }
    }
    return true
  }
}

extension UploadItem {
  /// nil: the number is too large.
  func under(_ number: Int, _ destination: UploadDestination) -> UploadItem? {
    var numbered = numbered ?? UploadQueue.NumberedName(target.path)
    guard numbered.count(to: number) else { return nil }
    return named(numbered, destination)
  }

  private func named(_ numbered: UploadQueue.NumberedName, _ destination: UploadDestination) -> UploadItem {
    var item = self
    item.numbered = numbered
    item.target = destination.target(
      numbered.path, length: target.length, contentType: target.contentType, overwrite: target.overwrite)
    (item.target.modified, item.target.metadata) = (target.modified, target.metadata)
    return item
  }

  /// The path at the destination without what tells the files of a group apart.
  fileprivate var stem: BytePath {
    let path = target.path
    return BytePath(path.bytes.dropLast(path.name.bytes.count) + GalleryName(path.name).stem.bytes)
  }

  /// Another file of the same folder, as it would be called at the destination. nil: the layout makes other names.
  fileprivate func sibling(_ name: BytePath, _ destination: UploadDestination) -> UploadItem? {
    if name == identity.name { return self }
    let (own, other) = (Self.split(identity.name), Self.split(name))
    let template = (numbered ?? UploadQueue.NumberedName(target.path)).template
    let last = template.name.bytes
    guard let stem = last.firstRange(of: own.stem), last.count >= stem.upperBound + own.ending.count,
      last.suffix(own.ending.count).elementsEqual(own.ending)
    else { return nil }
    let rest = last[stem.upperBound..<(last.count - own.ending.count)]
    let path = template.bytes.dropLast(last.count) + last[..<stem.lowerBound] + other.stem + rest + other.ending
    var item = self
    item.identity = identity.folder.appending(name)
    return item.named(UploadQueue.NumberedName(BytePath(path)), destination)
  }

  private static func split(_ name: BytePath) -> (stem: ArraySlice<UInt8>, ending: ArraySlice<UInt8>) {
    let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.bytes.endIndex
    return (name.bytes[..<dot], name.bytes[dot...])
  }
}
