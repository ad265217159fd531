import BlobHTTP
import Synchronization

/// Publishes uploads that belong together, once all of them have all their bytes: together, or none.
///
/// A member that waits is a saved upload that is complete, so it counts and expires as unfinished uploads do. Only its id
/// is remembered here. All decisions about groups are made on one thread.
final class UploadGroups: Sendable {
  private struct State {
    /// The members that have arrived, by the ids of their groups and by their positions.
    var groups: [String: [Int: Member]] = [:]
    var places: [UploadID: UploadGroup] = [:]
    /// The latest members whose files were there already, from the oldest to the newest.
    private var there: [UploadGroup] = []
    private static let mostThere = 4096

    mutating func noteThere(_ place: UploadGroup) {
      there.append(place)
      if there.count <= Self.mostThere { return }
      for old in there.prefix(Self.mostThere / 2) where groups[old.id]?[old.position]?.isThere == true {
        forgetMember(old)
      }
      there.removeFirst(Self.mostThere / 2)
    }

    /// Throws if another client has chosen the same id: its files would be published with these ones.
    func check(_ group: UploadGroup, _ target: ServedPath) throws(ServerError) {
      for (position, member) in groups[group.id] ?? [:] where !member.isThere {
        let isSamePlace = position == group.position
        if member.of == group.members, isSamePlace == (member.target == target) { continue }
        throw ServerError(
          409,
          "other files wait in the group \(group.id), or another number of them: each set of files needs an id of its own, "
            + "and each file a name of its own")
      }
    }

    mutating func remove(_ id: UploadID) {
      if let place = places.removeValue(forKey: id) { forgetMember(place) }
    }

    private mutating func forgetMember(_ place: UploadGroup) {
      groups[place.id]?[place.position] = nil
      if groups[place.id]?.isEmpty == true { groups[place.id] = nil }
    }
  }
  private struct Member {
    let id: UploadID
    let target: ServedPath
    /// The number of members of its group.
    let of: Int
    /// The version of the file that had the same bytes already, so that nothing waits; nil: the upload waits.
    let there: StoredVersion?
    var isThere: Bool { there != nil }
  }
  private let state = Mutex(State())
  /// nil: the store offers no groups, so that no upload has one.
  private let store: (any GroupPublishing)?
  private let thread = Workers(threads: 1)

  init(_ store: (any GroupPublishing)?) { self.store = store }

  /// Throws if an upload cannot become this member of its group.
  func admit(_ group: UploadGroup?, _ target: ServedPath) throws(ServerError) {
    guard let group else { return }
    try state.withLock { (state) throws(ServerError) in try state.check(group, target) }
  }

  /// Whether the upload has arrived and waits for the other members of its group.
  func contains(_ id: UploadID) -> Bool { state.withLock { $0.places[id] != nil } }

  /// The upload is gone, or belongs to another group.
  func forget(_ id: UploadID) { state.withLock { $0.remove(id) } }

  /// Ends the thread after all submitted work.
  func finish() { thread.finish() }

  /// Called when an upload, whose publication has begun, has all its bytes and could get its name. Publishes the whole
  /// group, or lets the upload wait.
  func arrived(_ upload: Upload) { thread.submit { self.publishIfComplete(upload) } }

  /// A file was published at `target`. Members that wait to replace it, or for the name to become free, are looked at again:
  /// they count as arrived if the file has their bytes, and are refused if their rule keeps the file. They would only wait
  /// until they expire, since a client that has given up, or has sent the photo again in another group, never asks.
  func noteTaken(_ target: ServedPath, in home: Uploads) {
    let waiting = state.withLock { state in
      state.groups.values.flatMap { $0.values.filter { !$0.isThere && $0.target == target } }.map(\.id)
    }
    if waiting.isEmpty { return }
    thread.submit {
      for id in waiting where self.contains(id) {
        // A member that is being published just now is looked at anyway.
        guard case .unfinished(let member)? = try? home.find(id), member.beginPublication() else { continue }
        self.publishIfComplete(member)
      }
    }
  }

  private func publishIfComplete(_ upload: Upload) {
    guard let store, let group = upload.record.group else { return upload.endPublication(.success(nil)) }
    let (ids, replaced, isThere): ([UploadID]?, UploadID?, Bool)
    do throws(ServerError) {
      // The client sends a file again if the response was lost, and another client may have sent it.
      isThere = try store.prepare(upload.completeReception(), upload.record)
      let there = isThere ? try upload.store.item(at: upload.record.target)?.version : nil
      try forgetMissing(of: group, in: upload.store)
      (ids, replaced) = try add(upload, group, there: there)
    } catch {
      if error.endsUpload { upload.store.delete(upload.id) }
      return upload.endPublication(.failure(error))
    }
    // The newer copy takes the place of the older one.
    if let replaced { try? upload.home.terminate(replaced) }
    var members: [Upload] = []
    for id in ids ?? [] {
      if id == upload.id {
        members.append(upload)
      } else if case .unfinished(let member)? = try? upload.home.find(id) {
        // If the member is being published just now, its own turn comes after this one.
        guard member.beginPublication() else { break }
        members.append(member)
      } else {
        forget(id)
        break
      }
    }
    if let ids, members.count == ids.count {
      publish(members, in: store)
      return
    }
    for member in members where member.id != upload.id { member.endPublication(.success(nil)) }
    if isThere { publish([upload], in: store, isWhole: false) } else { upload.endPublication(.success(nil)) }
  }

  /// Forgets the members whose files were there and are not any more, for example because they were moved away: the group is
  /// not complete without them.
  private func forgetMissing(of group: UploadGroup, in store: any UploadStore) throws(ServerError) {
    for (position, member) in state.withLock({ $0.groups[group.id] ?? [:] }) where member.isThere {
      if try member.there?.isVersion(of: store.item(at: member.target)) == true { continue }
      state.withLock { state in state.groups[group.id]?[position] = nil }
    }
  }

  /// The members to be published in the order of their positions, if all have arrived, and an earlier copy of this one.
  private func add(
    _ upload: Upload, _ group: UploadGroup, there: StoredVersion?
  ) throws(ServerError) -> (ids: [UploadID]?, replaced: UploadID?) {
    let (id, target) = (upload.id, upload.record.target)
    return try state.withLock { (state) throws(ServerError) in
      try state.check(group, target)
      let before = state.groups[group.id]?[group.position]
      if let before { state.remove(before.id) }
      if there != nil { state.noteThere(group) } else { state.places[id] = group }
      state.groups[group.id, default: [:]][group.position] = Member(
        id: id, target: target, of: group.members, there: there)
      let known = (state.groups[group.id] ?? [:]).filter { $0.value.of == group.members }
      let left = known.filter { !$0.value.isThere || $0.value.id == id }
      let ids = known.count == group.members ? left.sorted { $0.key < $1.key }.map(\.value.id) : nil
      return (ids, before.flatMap { $0.isThere || $0.id == id ? nil : $0.id })
    }
  }

  /// Publishes uploads whose publication has begun. If one of them cannot be published, none is, and this returns false.
  /// `isWhole`: no other members are missing.
  @discardableResult
  private func publish(
    _ members: [Upload], in store: any GroupPublishing, isWhole: Bool = true, isResumed: Bool = false
  ) -> Bool {
    var pending: [PendingMember] = []
    for member in members {
      do throws(ServerError) {
        let reception = try member.completeReception()
        let record = member.record
        try store.prepare(reception, record)
        pending.append(PendingMember(reception: reception, record: record))
      } catch {
        member.endPublication(.failure(error))
        for other in members where other.id != member.id {
          other.endPublication(error.endsUpload ? .success(nil) : .failure(error))
        }
        return false
      }
    }
    do throws(ServerError) {
      let publications = try store.publish(pending, isResumed: isResumed)
      if isWhole, let group = pending.first?.record.group { state.withLock { $0.groups[group.id] = nil } }
      for (member, var publication) in zip(members, publications) {
        if !isWhole { publication.group = nil }
        member.endPublication(.success(publication))
      }
      return true
    } catch {
      // A name that was taken just now ends no other member: the next attempt refuses the one that wanted the name.
      let failure = error.endsUpload ? ServerError(503, error.message) : error
      for member in members { member.endPublication(.failure(failure)) }
      return false
    }
  }

  /// Finishes the publication of groups in which a server was killed. Blocks; called before the server answers requests.
  func resume(in home: Uploads) {
    guard let store else { return }
    for ids in store.begunGroups() {
      // The others have their names.
      let left = ids.filter { store.hasBytes(of: $0) }
      var members: [Upload] = []
      for id in left {
        if case .unfinished(let member)? = try? home.find(id), member.isComplete, member.beginPublication() {
          members.append(member)
        }
      }
      var isPublished = false
      if members.count == left.count {
        isPublished = publish(members, in: store, isResumed: true)
      } else {
        // One of them is damaged or has expired.
        for member in members { member.endPublication(.success(nil)) }
      }
      if isPublished {
        // The store finds the members that have their names as finished.
        for id in ids { _ = try? home.find(id) }
      }
      if isPublished || store.hideGroup(ids) { store.endGroup(ids) }
    }
  }
}

/// A member of a group that is about to be published.
package struct PendingMember: Sendable {
  package var reception: any Reception
  package var record: UploadRecord
}
