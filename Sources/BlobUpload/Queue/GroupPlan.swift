import BlobCrypto
import BlobHTTP
import Blobs

/// Decides which files of one photo the server publishes together.
struct GroupPlan {
  let destination: QueueDestination

  /// The works with the groups that the server is told. `works`: whole groups, each in its order.
  func inGroups(_ works: [ClaimedItem]) -> [ClaimedItem] {
    guard destination.traits.publishesGroups else { return works }
    var works = works
    var members: [BytePath: [Int]] = [:]
    for (index, work) in works.enumerated() {
      if let key = work.item.group?.key {
        if work.entry != nil { members[key, default: []].append(index) }
      } else if work.session?.group != nil {
        members[work.item.identity, default: []].append(index)
      }
    }
    for indices in members.values {
      guard indices.count <= UploadGroup.most, !indices.contains(where: { goesInParts(works[$0]) }) else { continue }
      // An upload that waits for members of an earlier run, which are done or gone, is told that it is alone.
      if indices.count == 1, works[indices[0]].session?.group == nil { continue }
      let found = grouping(indices.map { works[$0] })
      for (index, work) in zip(indices, found) { works[index] = work }
    }
    return works
  }

  /// Whether the user wants the file in parts that are sent at the same time, or an earlier run has begun so.
  private func goesInParts(_ work: ClaimedItem) -> Bool {
    let uploader = destination.uploader
    let isWanted = uploader.partsAtOnce ?? 1 > 1 && work.item.info.length ?? 0 >= uploader.splitting.leastLength
    return isWanted || work.session?.sizeOfParts != nil
  }

  /// The members of one group, each with its position.
  func grouping(_ members: [ClaimedItem]) -> [ClaimedItem] {
    let id = groupID(of: members)
    let number = members.first?.item.numbered?.number ?? 1
    return members.enumerated().map { index, work in
      var item = work.item
      item.target.group = UploadGroup(
        id: id, members: Int64(members.count), position: Int64(index + 1))?.numbered(number)
      return work.with(item)
    }
  }

  /// The same for the same versions of the same files under the same names without numbers at the same destination, also in a
  /// later run, and for no others.
  private func groupID(of members: [ClaimedItem]) -> String {
    let digest = Digest(.sha256)
    func add(_ bytes: some Sequence<UInt8>) {
      let bytes = Array(bytes)
      (Array("\(bytes.count) ".utf8) + bytes).withUnsafeBytes { digest.update($0) }
    }
    add(destination.uploader.destination.endpoint.normalized.description.utf8)
    for work in members {
      let (item, version) = (work.item, work.item.info.validator)
      add(item.identity.bytes)
      // A request must not contain a sealed name, nor what it could be guessed by.
      let plain = item.target.unsealedPath == nil ? item.numbered?.first : nil
      add((plain ?? item.target.path).bytes)
      add("\(version?.version ?? "") \(version?.instance ?? "") \(item.info.length ?? -1)".utf8)
    }
    return digest.value().prefix(16).map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
  }
}
