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
//   hide:     If another file takes a name between begin and show, or while no server runs, the members that are shown get
//             their own names back in .fullbore, and FIRST.group is removed. A member that has replaced a file stays, since
//             that file is gone, and so does another file that a program has put in a member's place.
struct FileGroups: GroupPublishing {
  let files: FileStore

  @discardableResult
  func prepare(_ reception: any Reception, _ record: UploadRecord) throws(ServerError) -> Bool {
    do throws(ServerError) {
      var publication = try FilePublication(of: reception, record, isSaved: true, in: files)
      if try publication.meet() != nil { return true }
      try publication.sync()
      return false
    } catch {
      throw files.concealment.isOn ? error.concealed(at: record.target) : error
    }
  }

  func publish(_ group: [PendingMember], isResumed: Bool) throws(ServerError) -> [Publication] {
    var members: [FilePublication] = []
    for member in group {
      members.append(try FilePublication(of: member.reception, member.record, isSaved: true, in: files))
    }
    var same: [Int: StoredItem] = [:]
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
        let shown = members[..<index].enumerated().filter { same[$0.offset] == nil && !$0.element.replaces }
        if !isResumed, hide(shown.map { ($0.element.record, $0.element.inode) }) { endGroup(ids) }
        throw error
      }
    }
    var publications: [Publication] = []
    for index in members.indices {
      var publication: Publication
      if let item = same[index] {
        publication = members[index].end(as: item)
      } else {
        publication = try members[index].settle()
      }
      if files.concealment.isOn, publication.outcome == .same { publication.conceal() }
      publication.group = group[index].record.group
      publications.append(publication)
    }
    if !isResumed { endGroup(ids) }
    return publications
  }

  func hasBytes(of id: UploadID) -> Bool {
    do throws(ServerError) {
      return try files.served.uploads().status(id.data) != nil
    } catch {
      // The folder cannot be read now, so that the upload cannot be published.
      return true
    }
  }

  func hideGroup(_ ids: [UploadID]) -> Bool {
    guard let store = files.served.store else { return false }
    var shown: [(UploadRecord, UInt64?)] = []
    for id in ids where !hasBytes(of: id) {
      // The record of a member that is finished has another name, and one that cannot be read names no file.
      guard let record = try? store.record(id, id.info), !record.existing.replaces else { continue }
      shown.append((record, record.inode))
    }
    return hide(shown)
  }

  /// Takes their names from files that were shown. Returns false if the disk has failed.
  private func hide(_ shown: [(record: UploadRecord, inode: UInt64?)]) -> Bool {
    var isDone = true
    for member in shown.reversed() {
      do throws(ServerError) {
        if let inode = member.inode { try hide(member.record, inode) }
      } catch {
        // The folder of the file is gone, and the file with it.
        if error.status != 404 { isDone = false }
      }
    }
    return isDone
  }

  private func hide(_ record: UploadRecord, _ inode: UInt64) throws(ServerError) {
    let (data, name) = (record.id.data, record.target.name)
    let (store, folder) = (try files.served.uploads(), try files.served.folder(record.target.parent))
    func isOurs(_ status: stat?) -> Bool { status?.isFile == true && status.map { UInt64($0.st_ino) } == inode }
    guard isOurs(try folder.status(name)) else { return }
    var length: Int64 = 0
    let isHidden = try files.quota.changing { () throws(ServerError) -> Bool in
      if renameNew(folder, name, store, data) != 0 { throw failed("take back", record.target.description) }
      let status = try store.status(data)
      length = status.map { Int64($0.st_size) } ?? 0
      if isOurs(status) {
        files.quota.remove(length)
        return true
      }
      // Another program has put its file there just now.
      if renameNew(store, data, folder, name) != 0 { throw failed("give back", record.target.description) }
      return false
    }
    if !isHidden { return }
    // The bytes had room before.
    _ = try? files.quota.reserve(record.id, held: length)
    // Unfinished uploads expire by this time, which was the client's.
    data.withCString { _ = utimensat(store.number, $0, nil, 0) }
  }

  private func beginGroup(_ ids: [UploadID]) throws(ServerError) {
    guard ids.count > 1, let first = ids.first else { return }
    let store = try files.served.uploads()
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

  func endGroup(_ members: [UploadID]) {
    if let first = members.first { files.served.store?.unlink(first.group) }
  }

  func begunGroups() -> [[UploadID]] {
    guard let store = files.served.store, let names = try? store.names() else { return [] }
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
