import Blobs
import Platform

// The members of a group get their names one after the other. If the server is killed at any instant, all have their names
// once the next server listens, or none has:
//
//   begin:    All members are complete, synced, and their names are free. FIRST.group is created, with the ids of all
//             members in their order, and .fullbore is synced. From now on the group is published.
//   show:     Each member's data is renamed to its target, in the order of the group. Nothing else happens in between.
//   settle:   The folders are synced, and each record is finished as for any upload.
//   end:      FIRST.group is removed. If killed before, the next start publishes the members that have no names yet.
//   conflict: If another file takes a name between begin and show, the members that are shown get their own names back in
//             .fullbore, and FIRST.group is removed.
extension FileStore {
  @discardableResult
  package func prepare(_ reception: any Reception, _ record: UploadRecord) throws(ServerError) -> Bool {
    do throws(ServerError) {
      var publication = try FilePublication(of: reception, record, isSaved: true, in: self)
      if try publication.meet() != nil { return true }
      try publication.sync()
      return false
    } catch {
      throw conceals ? error.concealed(at: record.target) : error
    }
  }

  package func publish(_ group: [PendingMember], isResumed: Bool) throws(ServerError) -> [Publication] {
    var members: [FilePublication] = []
    for member in group {
      members.append(try FilePublication(of: member.reception, member.record, isSaved: true, in: self))
    }
    var same: [Int: stat] = [:]
    for index in members.indices {
      same[index] = try members[index].meet()
      if same[index] == nil { try members[index].sync() }
    }
    let ids = group.map(\.record.id)
    if !isResumed { try beginGroup(ids) }
    for index in members.indices where same[index] == nil {
      do throws(ServerError) {
        if try members[index].show() { continue }
        throw ServerError(503, "\(members[index].record.target) was stored by another client just now; try again")
      } catch {
        if isResumed { throw error }
        try hide(members[..<index].enumerated().filter { same[$0.offset] == nil }.map(\.element))
        endGroup(ids)
        throw error
      }
    }
    var publications: [Publication] = []
    for index in members.indices {
      var publication: Publication
      if let status = same[index] {
        publication = members[index].end(as: status)
      } else {
        publication = try members[index].settle()
      }
      if conceals, publication.outcome == .same { publication.conceal() }
      publication.group = group[index].record.group
      publications.append(publication)
    }
    if !isResumed { endGroup(ids) }
    return publications
  }

  /// A file that another one was replaced by keeps its name: the bytes before are gone.
  private func hide(_ shown: [FilePublication]) throws(ServerError) {
    for member in shown.reversed() where !member.replaces { try member.hide() }
  }

  private func beginGroup(_ ids: [UploadID]) throws(ServerError) {
    guard ids.count > 1, let first = ids.first else { return }
    let store = try uploads()
    let draft = BytePath("\(first).draft")
    let file = try store.open(draft, O_WRONLY | O_CREAT | O_TRUNC)
    var text = ids.map { "\($0)\n" }.joined() + "end\n"
    let isWritten =
      text.withUTF8 { file.writeAll(UnsafeRawBufferPointer($0)) } && fsync(file.number) == 0
      && draft.withCString { old in first.group.withCString { renameat(store.number, old, store.number, $0) } } == 0
    if !isWritten {
      let error = store.failed("write the list of the group of", first.description)
      store.unlink(draft)
      throw error
    }
    try store.sync("\(ServedPath.storeName)")
  }

  package func endGroup(_ members: [UploadID]) {
    if let first = members.first { store?.unlink(first.group) }
  }

  package func begunGroups() -> [[UploadID]] {
    guard let store, let names = try? store.names() else { return [] }
    return names.compactMap { name in
      guard let file = UploadFile(name), file.kind == .group else { return nil }
      // A list that cannot be read is left alone: its members wait for their clients.
      return try? store.group(name)
    }
  }
}

extension Folder {
  /// The ids in the list of a group; nil: it is incomplete, as after a power failure.
  fileprivate func group(_ name: BytePath) throws(ServerError) -> [UploadID]? {
    let file = try open(name, O_RDONLY)
    let text = withUnsafeTemporaryAllocation(byteCount: 4 << 10, alignment: 1) { buffer -> String in
      let count = pread(file.number, buffer.baseAddress!, buffer.count, 0)
      return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
    var lines = text.split(separator: "\n")
    guard lines.popLast() == "end" else { return nil }
    let ids = lines.compactMap { UploadID($0) }
    return ids.count == lines.count ? ids : nil
  }
}
