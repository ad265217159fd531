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
    /// The ids of the groups that were published lately, from the oldest to the newest.
    private var order: [String] = []
    private(set) var published: Set<String> = []
    private static let mostPublished = 4096

    mutating func notePublished(_ id: String) {
      guard published.insert(id).inserted else { return }
      order.append(id)
      if order.count <= Self.mostPublished { return }
      published.subtract(order.prefix(Self.mostPublished / 2))
      order.removeFirst(Self.mostPublished / 2)
    }

    /// Throws if another client has chosen the same id: its files would be published with these ones.
    func check(_ group: UploadGroup, _ target: ServedPath) throws(ServerError) {
      for (position, member) in groups[group.id] ?? [:] {
        let isSamePlace = position == group.position
        if member.of == group.members, isSamePlace == (member.target == target) { continue }
        throw ServerError(
          409,
          "other files wait in the group \(group.id), or another number of them: each set of files needs an id of its own, "
            + "and each file a name of its own")
      }
    }

    mutating func remove(_ id: UploadID) {
      guard let place = places.removeValue(forKey: id) else { return }
      groups[place.id]?[place.position] = nil
      if groups[place.id]?.isEmpty == true { groups[place.id] = nil }
    }
  }
  private struct Member {
    let id: UploadID
    let target: ServedPath
    /// The number of members of its group.
    let of: Int
  }
  private let state = Mutex(State())
  private let store: any UploadStore
  private let thread = Workers(threads: 1)

  init(_ store: any UploadStore) { self.store = store }

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

  private func publishIfComplete(_ upload: Upload) {
    guard let group = upload.record.group else { return upload.endPublication(.success(nil)) }
    if isThere(upload, group) {
      publish([upload])
      return
    }
    let (ids, replaced): ([UploadID]?, UploadID?)
    do throws(ServerError) {
      (ids, replaced) = try add(upload, group)
    } catch {
      store.delete(upload.id)
      return upload.endPublication(.failure(error))
    }
    // The client sends a file again if the response was lost: the newer copy takes the place of the older one.
    if let replaced { try? upload.home.terminate(replaced) }
    guard let ids else { return upload.endPublication(.success(nil)) }
    var members: [Upload] = []
    for id in ids {
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
    if members.count == ids.count {
      publish(members)
      return
    }
    for member in members where member.id != upload.id { member.endPublication(.success(nil)) }
    upload.endPublication(.success(nil))
  }

  /// Whether the group was published lately with the same bytes under this name: the client sends a file again if the response
  /// was lost.
  private func isThere(_ upload: Upload, _ group: UploadGroup) -> Bool {
    guard state.withLock({ $0.published.contains(group.id) }) else { return false }
    // An error is thrown again when the upload is published.
    return (try? store.prepare(upload.completeReception(), upload.record)) == true
  }

  /// The members in the order of their positions, if all have arrived, and an earlier copy of this one.
  private func add(
    _ upload: Upload, _ group: UploadGroup
  ) throws(ServerError) -> (ids: [UploadID]?, replaced: UploadID?) {
    let (id, target) = (upload.id, upload.record.target)
    return try state.withLock { (state) throws(ServerError) in
      try state.check(group, target)
      let before = state.groups[group.id]?[group.position]?.id
      if let before { state.remove(before) }
      state.places[id] = group
      state.groups[group.id, default: [:]][group.position] = Member(id: id, target: target, of: group.members)
      let known = state.groups[group.id] ?? [:]
      let ids = known.count == group.members ? known.sorted { $0.key < $1.key }.map(\.value.id) : nil
      return (ids, before == id ? nil : before)
    }
  }

  /// Publishes uploads whose publication has begun. If one of them cannot be published, none is. Returns false if the disk
  /// has failed, so that it may be tried again.
  @discardableResult private func publish(_ members: [Upload], isResumed: Bool = false) -> Bool {
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
        return error.endsUpload
      }
    }
    do throws(ServerError) {
      let publications = try store.publish(pending, isResumed: isResumed)
      if let group = pending.first?.record.group { state.withLock { $0.notePublished(group.id) } }
      for (member, publication) in zip(members, publications) { member.endPublication(.success(publication)) }
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
    for ids in store.begunGroups() {
      var members: [Upload] = []
      for id in ids {
        // A member that is published already is found as finished.
        guard case .unfinished(let member)? = try? home.find(id), member.isComplete, member.beginPublication() else {
          continue
        }
        members.append(member)
      }
      if publish(members, isResumed: true) { store.endGroup(ids) }
    }
  }
}

/// A member of a group that is about to be published.
package struct PendingMember: Sendable {
  package var reception: any Reception
  package var record: UploadRecord
}
