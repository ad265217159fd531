import Blobs
import Platform

// If the server is killed at any instant, an upload is resumable or finished. The order of file operations ensures
// that:
//
//   save:     The data file exists already; then the info file is created by a rename (completely or not at all).
//   publish:  The data file is synced and renamed to its target, and the target's folder is synced. Only then is info
//             written again, with the published file's version, and renamed to done. If killed in between, info exists
//             without data. No other operation creates that state, so `load` treats the upload as finished if the
//             target is the published file, and as gone otherwise. Without a version the inode and the length of the file
//             decide: a rename keeps the inode.
//   same:     If a file with the same bytes was published before, info is renamed to done first; then data is deleted.
//             If killed in between, done exists with data. Start-up deletes such data.
//   finished: done is only valid as long as the target is the file that was published. If that file was deleted,
//             moved or replaced, `load` deletes the record and reports 410, so that the client sends the file again.
//   delete:   info is deleted first, then data. If killed in between, only data exists, which start-up deletes.
//   join:     See FileJoining.
//
// After a power failure, data may be shorter than what was acknowledged. Its size is the offset, so the client sees it.
extension FileStore {
  package func begin(
    _ id: UploadID, for _: ServedPath, length: Int64?, modified _: ModificationTime?
  ) throws(ServerError) -> any Reception {
    try restoringOwnFolder { () throws(ServerError) in try receive(id, length: length) }
  }

  /// Runs `work`. If it fails with ENOENT because somebody has removed `.fullbore`, the folder is created again and `work`
  /// runs a second time. The uploads in the removed folder are lost. Throws at least 500 if the folder cannot be
  /// created.
  private func restoringOwnFolder<Result>(_ work: () throws(ServerError) -> Result) throws(ServerError) -> Result {
    do throws(ServerError) {
      return try work()
    } catch {
      guard error.systemError == ENOENT else { throw error }
    }
    do throws(ServerError) {
      try served.restoreOwn(forgetUploads)
      return try work()
    } catch {
      // The client's request was correct, so the status is at least 500.
      throw ServerError(max(500, error.status), "\(ServedPath.storeName) was removed: \(error.message)")
    }
  }

  private func receive(_ id: UploadID, length: Int64?) throws(ServerError) -> any Reception {
    let store = try served.uploads()
    if let length { try quota.reserve(id, promised: length) }
    do throws(ServerError) {
      let file = try store.open(id.data, O_RDWR | O_CREAT | O_EXCL)
      return FileReception(id, file, length: 0, store, quota)
    } catch {
      quota.release(id)
      throw error
    }
  }

  package func reopen(_ id: UploadID) throws(ServerError) -> any Reception {
    let store = try served.uploads()
    guard let status = try store.status(id.data) else { throw ServerError(410, "the upload is gone") }
    guard status.isFile else { throw ServerError(410, "the upload is gone: \(id.data) is not a file") }
    let file = try ServerError.retryable { () throws(ServerError) in try store.open(id.data, O_RDWR) }
    saved.touch(id)
    return FileReception(id, file, length: Int64(status.st_size), store, quota)
  }

  package func save(_ record: UploadRecord) throws(ServerError) {
    let store = try served.uploads()
    // The bytes of a final upload are covered by the shares of its parts.
    if record.parts == nil { try quota.reserve(record.id, promised: record.length ?? 0) }
    let isNew = try store.status(record.id.info) == nil
    var record = record
    if record.parts == nil { record.inode = try store.status(record.id.data).map { UInt64($0.st_ino) } }
    if isNew, record.text.utf8.count > Folder.largestRecord {
      throw ServerError(
        431,
        "what the request says of the upload, as its name, metadata or parts, takes more than \(Folder.largestRecord) bytes"
      )
    }
    if let parts = record.parts, isNew { try joining.claim(parts, for: record.id, store) }
    do throws(ServerError) {
      try store.write(record)
    } catch {
      if isNew, record.parts != nil { joining.releaseClaims(of: record.id, store) }
      throw error
    }
    if isNew { saved.begin() }
  }

  package func load(_ id: UploadID) throws(ServerError) -> SavedUpload? {
    guard let store else { return nil }
    let now = served.now
    if let record = try store.record(id, id.info) {
      if let waiting = try loadJoint(record, store, at: now) { return waiting }
      if let status = try store.status(id.data) {
        let lifetime = record.lifetime(at: Int64(status.st_size), expiry)
        let expires = (lastByte(of: id, store) ?? status.modified).addingClamped(lifetime)
        if expires <= now {
          deleteExpired(id)
          throw ServerError(410, "the upload has expired")
        }
        return SavedUpload(
          record: record.asSaved, offset: Int64(status.st_size), isFinished: false, expires: shown(expires, at: now))
      }
      guard let item = try publishedFile(of: record) else { throw isGone(id, record) }
      finish(record, as: item, store)
    }
    guard let record = try store.record(id, id.done), let length = record.length,
      let expires = try store.status(id.done)?.modified.addingClamped(expiry), expires > now
    else { return nil }
    if try !isStillPublished(record) { throw isGone(id, record) }
    return SavedUpload(record: record.asSaved, offset: length, isFinished: true, expires: shown(expires, at: now))
  }

  /// Loads a final upload without bytes, or a part that waits for the other parts or was taken over. nil: the upload is
  /// loaded like any other. `now`: the present time of the file system.
  private func loadJoint(
    _ record: UploadRecord, _ store: Folder, at now: Int64
  ) throws(ServerError) -> SavedUpload? {
    if let parts = record.parts {
      guard try store.status(record.id.data) == nil, let first = parts.first, try store.status(first.data) != nil,
        let modified = ([record.id] + parts).compactMap({ lastByte(of: $0, store) }).max()
      else { return nil }
      return SavedUpload(
        record: record, offset: 0, isFinished: false, expires: shown(modified.addingClamped(expiry), at: now))
    }
    // A claimed part expires together with its final upload.
    guard record.isPart, let final = joining.claimant(of: record.id) else { return nil }
    let expires = shown((lastByte(of: final, store) ?? now).addingClamped(expiry), at: now)
    guard let status = try store.status(record.id.data) else {
      return record.length.map { SavedUpload(record: record, offset: $0, isFinished: true, expires: expires) }
    }
    return SavedUpload(
      record: record, offset: Int64(status.st_size), isFinished: false,
      expires: max(expires, shown(status.modified.addingClamped(expiry), at: now)))
  }

  private func isGone(_ id: UploadID, _ record: UploadRecord) -> ServerError {
    delete(id)
    return ServerError(410, "the upload is gone: \(record.target) is not the file any more that it was published as")
  }

  package func isStillPublished(_ record: UploadRecord) throws(ServerError) -> Bool {
    if !record.isPart { return try publishedFile(of: record) != nil }
    // A part's bytes are in the file of its final upload.
    guard let store, let id = joining.claimant(of: record.id) else { return false }
    if try store.status(id.info) != nil { return true }
    // A final upload is never a part, even if a damaged record says so.
    guard let final = try store.record(id, id.done), !final.isPart else { return false }
    return try publishedFile(of: final) != nil
  }

  /// The file that the upload was published as; nil if it was deleted, moved, changed or replaced since.
  private func publishedFile(of record: UploadRecord) throws(ServerError) -> StoredItem? {
    let found: StoredItem?
    do throws(ServerError) {
      found = try served.item(at: record.target)
    } catch {
      // The target is not a file, or a component of its path is not a folder. A missing permission may come back.
      if [403, 409].contains(error.status), error.systemError != EACCES { return nil }
      throw ServerError(max(500, error.status), error.message)
    }
    guard let found, !found.isFolder else { return nil }
    let isSame =
      record.published.map { $0.isVersion(of: found) }
      ?? (found.length == record.length && record.inode ?? found.inode == found.inode)
    return isSame ? found : nil
  }

  func publishOpenly(
    _ reception: any Reception, _ record: UploadRecord, isSaved: Bool
  ) throws(ServerError) -> Publication {
    var publication = try FilePublication(of: reception, record, isSaved: isSaved, in: self)
    while true {
      if let same = try publication.meet() { return publication.end(as: same) }
      try publication.sync()
      if try publication.show() { return try publication.settle() }
      // The name appeared or changed meanwhile: it is checked again.
    }
  }

  func finish(_ record: UploadRecord, as item: StoredItem, _ store: Folder) {
    var record = record
    record.published = item.version
    // If this fails, for example on a full disk, the length of the file decides whether it is still the published one.
    try? store.write(record)
    finish(record.id, store)
    // If the server is killed before all parts are finished, the next start completes this.
    for part in record.parts ?? [] { finish(part, store) }
    deleteExcessRecords()
  }

  func finish(_ id: UploadID, _ store: Folder) {
    // If the rename fails, `load` still recognizes the upload as finished.
    let renamed = id.info.withCString { info in
      _ = utimensat(store.number, info, nil, 0)  // its expiry time starts now
      return id.done.withCString { renameat(store.number, info, store.number, $0) }
    }
    if renamed != 0 { return }
    saved.end(id)
    noteFinished(id, (try? store.status(id.done)) ?? nil)  // an unreadable record counts as empty
  }

  func unlinkInfo(_ id: UploadID, _ store: Folder) {
    if store.unlink(id.info) { saved.end(id) }
  }

  package func delete(_ id: UploadID) {
    guard let store else { return }
    unlinkInfo(id, store)
    store.unlink(id.done)
    store.unlink(id.data)
    store.unlink(id.bad)
    finished.withLock { $0.remove(id) }
    quota.release(id)
    deleteParts(of: id, store)
  }

  func deleteParts(of id: UploadID, _ store: Folder) {
    // The claims are removed first: a damaged record may name the upload itself as a part.
    guard let parts = joining.forgetClaims(of: id) else { return }
    for part in parts { delete(part) }
    store.unlink(id.join)
  }

  package func onShortage(_ submit: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
    quota.onShortage(submit)
  }
}
