import Blobs
import Platform
import Synchronization

/// Stores files in a folder, and unfinished uploads in its subfolder `.fullbore`. `ID.data` contains the bytes, so that
/// its size is the offset. `ID.info` is the record of a saved upload; `ID.done` replaces it once the file is published.
/// While bytes are provisional, the name of `ID.START.mark` contains the offset of the first one. An empty `ID.join`
/// besides one of the two records marks a final upload, which consists of parts.
package final class FileStore: UploadStore, FileRemoval {
  let served: ServedFolder
  let joining: FileJoining
  let expiry: Int64
  /// Clients may learn nothing of the files, except whether a name is taken.
  let concealment: Concealment
  let quota: Quota
  let interruption = Cancellation()
  let saved = SavedUploads()
  let finished: Mutex<FinishedRecords>
  private let damages = Mutex<[String]>([])

  /// Opens the store in `folder`, which must exist. A second store for the same folder is refused. `readOnly` needs no
  /// write permission and no lock. Blocks while it deletes leftover files.
  package init(
    _ folder: BytePath, expire: Duration, maxTotal: Int64? = nil, readOnly: Bool = false, conceals: Bool = false,
    finishedRecords: FinishedRecords.Limits = FinishedRecords.Limits()
  ) throws(ServerError) {
    finished = Mutex(FinishedRecords(finishedRecords))
    (expiry, concealment) = (expire.nanoseconds, Concealment(isOn: conceals))
    quota = Quota(maxTotal)
    served = try ServedFolder(folder, readOnly: readOnly)
    joining = FileJoining(served, quota, interruption)
    guard let store else { return }
    let found = takeUp(try store.names(), store)
    damages.withLock { $0 = found }
    deleteExcessRecords()
    try measure(store)
  }

  /// Takes up what an earlier server process has left in its own folder, which has these names. Returns the damage that
  /// was found there.
  private func takeUp(_ names: [BytePath], _ store: Folder) -> [String] {
    let found = clearLeftOvers(names, store)
    noteFinished(names, store)
    return found
  }

  private func measure(_ store: Folder) throws(ServerError) {
    if !quota.isLimited { return }
    let root = served.root
    try quota.measure(
      shares(store),
      published: { [interruption] () throws(ServerError) in
        try TreeSize.bytes(below: root, without: ServedPath.storeName, interruption)
      })
  }

  /// The bytes that the unfinished uploads take.
  private func shares(_ store: Folder) throws(ServerError) -> [UploadID: Quota.Share] {
    var shares: [UploadID: Quota.Share] = [:]
    for name in try store.names() {
      guard let file = UploadFile(name), file.kind == .data else { continue }
      // An unreadable record reserves nothing; its bytes are still counted.
      let held = (try? store.status(name)).map { Int64($0.st_size) } ?? 0
      let promised = (try? store.record(file.id, file.id.info))?.length ?? 0
      let inParts = try? joining.joined(file.id, store)
      shares[file.id] = inParts.map { Quota.Share(held: $0) } ?? Quota.Share(promised: promised, held: held)
    }
    return shares
  }

  /// Forgets what is known of the uploads in a folder that is not there any more.
  func forgetUploads() {
    saved.removeAll()
    joining.forgetAll()
    finished.withLock { $0.removeAll() }
    quota.forgetUploads()
  }

  /// Damage found when the store was opened, and what was done about it: one line each.
  var notices: [String] { damages.withLock { $0 } }

  package var unfinished: Int { saved.count }
  package var continued: Int { saved.touchedCount }

  package var abilities: StoreAbilities {
    let digests = FileDigests(interruption: interruption)
    return StoreAbilities(
      removal: self, listing: FolderLister(served: served, interruption: interruption),
      archiving: TreeLister(served: served, interruption: interruption), joining: joining, digests: digests,
      receptionDigests: digests, groups: FileGroups(files: self))
  }

  package var isInterrupted: Bool { interruption.isCancelled }
  package func interrupt() { interruption.cancel() }

  package func close() { served.unlock() }

  package var problem: String? { served.problem }

  package func lookAgain() -> [String] {
    var (notices, isAnother) = served.lookAgain { names, store in
      forgetUploads()
      return takeUp(names, store)
    }
    if !isAnother { return notices }
    deleteExcessRecords()
    guard let store else { return notices }
    do throws(ServerError) {
      try measure(store)
    } catch {
      if !interruption.isCancelled { notices.append("\(served.path) could not be measured: \(error.message)") }
    }
    return notices
  }

  /// The folder `.fullbore`; nil: the store is read-only.
  var store: Folder? { served.store }

  /// Deletes files that only the previous server process could have continued: bytes that were never saved, and
  /// incomplete records. Damaged files do not keep the server from starting: they are set aside or left alone, and the
  /// returned lines report them.
  private func clearLeftOvers(_ names: [BytePath], _ store: Folder) -> [String] {
    let kept = Set(names)
    var notices: [String] = []
    for name in names {
      do throws(ServerError) {
        guard let file = UploadFile(name) else {
          try ProvisionalMark(name)?.dropBytes(in: store)
          if name != "lock" { store.unlink(name) }
          continue
        }
        if file.kind == .data, !kept.contains(file.id.info), !kept.contains(file.id.bad) { store.unlink(name) }
        if file.kind != .info { continue }
        if try store.record(file.id, name) != nil {
          saved.takeUp(file.id)
          try store.dropUnwritten(of: file.id)
        } else {
          notices.append(try setAside(file.id, store))
        }
      } catch {
        notices.append("\(Self.shown(name)) was left alone: \(error.message)")
      }
    }
    for name in names {
      guard let file = UploadFile(name), file.kind == .join else { continue }
      do throws(ServerError) {
        for part in try joining.findClaims(of: file.id, store) { finish(part, store) }
      } catch {
        notices.append("\(Self.shown(name)) was left alone: \(error.message)")
      }
    }
    return notices
  }

  /// Renames the damaged record of an unfinished upload that cannot be resumed, so that it is ignored. The bytes stay
  /// until they expire.
  private func setAside(_ id: UploadID, _ store: Folder) throws(ServerError) -> String {
    let renamed = id.info.withCString { info in id.bad.withCString { renameat(store.number, info, store.number, $0) } }
    if renamed != 0 { throw store.failed("set aside the record of upload", id.description) }
    return "\(Self.shown(id.info)) is no record of an upload that can go on: it was set aside as \(id.bad); its bytes, "
      + "in \(id.data), are kept until they expire"
  }

  private static func shown(_ name: BytePath) -> String { "\(ServedPath.storeName)/\(name)" }
}

// MARK: Published files

extension FileStore {
  package func item(at path: ServedPath) throws(ServerError) -> StoredItem? { try served.item(at: path) }

  package func open(_ path: ServedPath) throws(ServerError) -> OpenItem { try served.open(path) }

  package func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState {
    try concealment.target(at: path, in: folder) { () throws(ServerError) in try served.target(at: path, in: folder) }
  }

  package func publish(
    _ reception: any Reception, _ record: UploadRecord, isSaved: Bool
  ) throws(ServerError) -> Publication {
    try concealment.publication(at: record.target) { () throws(ServerError) in
      try publishOpenly(reception, record, isSaved: isSaved)
    }
  }

  package func remove(_ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void) throws(ServerError) {
    try concealment.removal(of: path) { () throws(ServerError) in try removeOpenly(path, check) }
  }

  private func removeOpenly(_ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void) throws(ServerError) {
    let folder = try served.folder(path.parent)
    try quota.changing { () throws(ServerError) in
      guard !path.isRoot, let status = try folder.status(path.name) else { throw ServerError(404, "no file \(path)") }
      let item = try ServedFolder.item(status, path)
      if item.isFolder { throw ServerError(409, "\(path) is a folder; only files can be deleted") }
      try check(item)
      if !folder.unlink(path.name) { throw failed("delete", path.description) }
      quota.remove(item.length)
    }
    try folder.sync(path.parent.description)
  }

  package var free: Int64? {
    let onDisk = served.root.free
    guard let inQuota = quota.free else { return onDisk }
    return onDisk.map { min($0, inQuota) } ?? inQuota
  }

  package var isBoundByLimit: Bool { quota.free.map { $0 <= served.root.free ?? .max } ?? false }

  package func takeRefusal() -> Bool { quota.takeRefusal() }
}
