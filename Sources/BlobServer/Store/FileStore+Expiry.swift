import Blobs
import Platform

extension FileStore {
  package func expire(isBusy: (UploadID) -> Bool) -> [UploadID] {
    // If the folder cannot be restored, the next round or the next upload tries again; that upload reports the error.
    try? served.restoreOwn(forgetUploads)
    guard let store, let names = try? store.names() else { return [] }
    var (now, isAsked) = (wallClock(), false)
    var expired: [UploadID] = []
    for name in names {
      guard let file = UploadFile(name), [.info, .done, .bad].contains(file.kind), !isHeldByFinal(file.id) else {
        continue
      }
      let parts = joining.parts(of: file.id) ?? []
      if ([file.id] + parts).contains(where: isBusy) { continue }
      let modified =
        file.kind == .info
        ? ([file.id] + parts).compactMap { lastByte(of: $0, store) }.max() : (try? store.status(name))?.modified
      guard let modified else { continue }
      let lifetime = file.kind == .info ? lifetime(of: file.id, store) : expiry
      // The file system is asked only if its answer may matter: the question changes a time on the disk, which may sleep.
      if !isAsked, modified.addingClamped(lifetime) <= now || modified > now.addingClamped(Self.clockDifference) {
        (now, isAsked) = (served.now, true)
      }
      if modified > now.addingClamped(Self.clockDifference) { beginToAge([file.id] + parts, store) }
      guard modified.addingClamped(lifetime) <= now else { continue }
      if !deleteExpired(file.id) { continue }
      if file.kind == .info { expired += [file.id] + parts }
    }
    return expired
  }

  /// See `UploadRecord.lifetime`.
  private func lifetime(of id: UploadID, _ store: Folder) -> Int64 {
    guard let status = try? store.status(id.data), status.st_size == 0, let record = try? store.record(id, id.info)
    else { return expiry }
    return record.lifetime(at: 0, expiry)
  }

  /// Returns false if the upload is a part that a final upload has claimed meanwhile.
  @discardableResult func deleteExpired(_ id: UploadID) -> Bool {
    let final = try? joining.unlessClaimed(id) { () throws(ServerError) in delete(id) }  // `delete` does not throw
    if final == nil { return true }
    if isHeldByFinal(id) { return false }
    delete(id)
    return true
  }

  /// Whether the upload is a part of an existing final upload, which expires together with its parts. A final upload is
  /// never a part itself. If damaged records say so, perhaps even that it is a part of itself, each upload expires by
  /// its own age.
  private func isHeldByFinal(_ id: UploadID) -> Bool {
    joining.claimant(of: id).map { joining.claimant(of: $0) == nil } ?? false
  }

  /// The maximum assumed difference between clocks, in nanoseconds.
  private static let clockDifference: Int64 = 3_600_000_000_000

  /// Resets the times of files whose times lie in the future, as after a wrong clock was corrected. Otherwise they
  /// would not expire before that time.
  private func beginToAge(_ ids: [UploadID], _ store: Folder) {
    for name in ids.flatMap({ [$0.data, $0.info, $0.done, $0.bad] }) {
      name.withCString { _ = utimensat(store.number, $0, nil, 0) }  // most of these files do not exist
    }
  }

  /// The time of an unfinished upload's last byte, or of its record if that is later. If the server was killed during
  /// publication, the data file may already have the modification time that the client wants for the file.
  func lastByte(of id: UploadID, _ store: Folder) -> Int64? {
    // If the files are gone, the upload need not expire.
    [try? store.status(id.data), try? store.status(id.info)].compactMap { $0?.modified }.max()
  }

  /// Adds a record that was just finished.
  func noteFinished(_ id: UploadID, _ status: stat?) {
    finished.withLock { $0.add(id, bytes: status.map { Int64($0.st_size) } ?? 0) }
  }

  /// Adds the records that existed when the server started.
  func noteFinished(_ names: [BytePath], _ store: Folder) {
    let found = names.compactMap { name -> (id: UploadID, status: stat)? in
      // A record that cannot be read is not counted.
      guard let file = UploadFile(name), file.kind == .done, let status = try? store.status(name) else { return nil }
      return (file.id, status)
    }
    for record in found.sorted(by: { $0.status.modified < $1.status.modified }) {
      noteFinished(record.id, record.status)
    }
  }

  /// Deletes the oldest records of finished uploads if there are too many; records of parts are deleted with their
  /// final upload.
  func deleteExcessRecords() {
    while let oldest = finished.withLock({ $0.removeExcess() }) { delete(oldest) }
  }

  package func complete() -> [UploadRecord] {
    // If the folder cannot be read, such an upload is published when its client asks for it.
    guard let store, let names = try? store.names() else { return [] }
    return names.compactMap { name in
      guard let file = UploadFile(name), file.kind == .info, let record = try? store.record(file.id, name),
        !record.isPart
      else { return nil }
      if let parts = record.parts { return parts.allSatisfy { joining.isWhole($0, store) } ? record.asSaved : nil }
      guard let status = try? store.status(file.id.data), record.isComplete(at: Int64(status.st_size)) else {
        return nil
      }
      return record.asSaved
    }
  }

  package func unfinishedUploads(atMost most: Int) -> [UnfinishedUpload] {
    guard let store, let names = try? store.names() else { return [] }
    var found: [BytePath: UnfinishedUpload] = [:]
    for name in names where found.count < most {
      // A record that cannot be read is reported when the folder is served again.
      guard let file = UploadFile(name), file.kind == .info, let saved = (try? load(file.id)) ?? nil,
        !saved.isFinished, saved.record.parts == nil
      else { continue }
      let path = BytePath(path(of: saved.record).bytes)
      let isPart = saved.record.isPart
      // The parts of one file are one upload to whoever sends it.
      let before = isPart ? found[path] : nil
      found[path] = UnfinishedUpload(
        path: path, received: saved.offset.addingClamped(before?.received ?? 0),
        length: isPart ? nil : saved.record.length, isKept: true)
    }
    return found.values.sorted { $0.path < $1.path }
  }

  /// The path of the file that the upload, or its final upload, is to become.
  private func path(of record: UploadRecord) -> ServedPath {
    guard record.isPart else { return record.target }
    if let final = joining.claimant(of: record.id), let whole = (try? load(final)) ?? nil { return whole.record.target }
    return record.namedTarget
  }
}
