import Blobs
import Platform
import Synchronization

/// Stores files in a folder, and unfinished uploads in its subfolder `.fullbore`. `ID.data` contains the bytes, so that
/// its size is the offset. `ID.info` is the record of a saved upload; `ID.done` replaces it once the file is published.
/// While bytes are provisional, the name of `ID.START.mark` contains the offset of the first one. An empty `ID.join`
/// besides one of the two records marks a final upload, which consists of parts.
package final class FileStore: UploadStore, FileRemoval, FolderListing, FolderArchiving, PartJoining, DigestReading,
  ReceptionDigests, GroupPublishing
{
  let path: BytePath
  /// The served folder, as it was when it was opened last.
  let opened: Mutex<Folder>
  var root: Folder { opened.withLock { $0 } }
  /// The folder `.fullbore`; nil: the store is read-only.
  let own: Mutex<StateFolder?>
  let expiry: Int64
  /// Clients may learn nothing of the files, except whether a name is taken.
  let concealment: Concealment
  let quota: Quota
  let interruption = Cancellation()
  let saved = SavedUploads()
  let claims = Mutex(Claims())
  let finished: Mutex<FinishedRecords>
  private let damages = Mutex<[String]>([])
  /// Why the folder at `path` is not the one that is served, as the operator was told; nil: it is.
  let trouble = Mutex<String?>(nil)

  /// Opens the store in `folder`, which must exist. A second store for the same folder is refused. `readOnly` needs no
  /// write permission and no lock. Blocks while it deletes leftover files.
  package init(
    _ folder: BytePath, expire: Duration, maxTotal: Int64? = nil, readOnly: Bool = false, conceals: Bool = false,
    finishedRecords: FinishedRecords.Limits = FinishedRecords.Limits()
  ) throws(ServerError) {
    finished = Mutex(FinishedRecords(finishedRecords))
    (expiry, concealment) = (expire.nanoseconds, Concealment(isOn: conceals))
    path = folder
    let root = try Folder(folder)
    opened = Mutex(root)
    quota = Quota(maxTotal)
    if readOnly {
      own = Mutex(nil)
      return
    }
    let own = try StateFolder(in: root, folder)
    self.own = Mutex(own)
    let found = takeUp(try own.folder.names(), own.folder)
    damages.withLock { $0 = found }
    deleteExcessRecords()
    try measure(own.folder)
  }

  /// Takes up what an earlier server process has left in its own folder, which has these names. Returns the damage that
  /// was found there.
  func takeUp(_ names: [BytePath], _ store: Folder) -> [String] {
    let found = clearLeftOvers(names, store)
    noteFinished(names, store)
    return found
  }

  func measure(_ store: Folder) throws(ServerError) {
    if !quota.isLimited { return }
    let root = root
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
      let inParts = try? joined(file.id, store)
      shares[file.id] = inParts.map { Quota.Share(held: $0) } ?? Quota.Share(promised: promised, held: held)
    }
    return shares
  }

  /// Forgets what is known of the uploads in a folder that is not there any more.
  func forgetUploads() {
    saved.removeAll()
    claims.withLock { $0 = Claims() }
    finished.withLock { $0.removeAll() }
    quota.forgetUploads()
  }

  /// Damage found when the store was opened, and what was done about it: one line each.
  var notices: [String] { damages.withLock { $0 } }

  package var unfinished: Int { saved.count }
  package var continued: Int { saved.touchedCount }

  package var abilities: StoreAbilities {
    StoreAbilities(
      removal: self, listing: self, archiving: self, joining: self, digests: self, receptionDigests: self, groups: self)
  }

  package func interrupt() { interruption.cancel() }

  package func close() { own.withLock { $0?.unlock() } }

  /// The folder `.fullbore`; nil: the store is read-only.
  var store: Folder? { own.withLock { $0?.folder } }

  /// The folder of unfinished uploads; throws 403 for a read-only server.
  func uploads() throws(ServerError) -> Folder {
    guard let store else { throw ServerError(403, "the server is read-only", kind: .readOnly) }
    return store
  }

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
        try findClaims(of: file.id, store)
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
  package func item(at path: ServedPath) throws(ServerError) -> StoredItem? {
    if path.isRoot {
      return StoredItem(isFolder: true, length: 0, modified: 0, modifiedSeconds: 0, changed: 0, inode: 0)
    }
    do throws(ServerError) {
      let folder = try folder(path.parent)
      guard let status = try folder.status(path.name) else { return nil }
      return try Self.item(status, path, in: folder)
    } catch {
      if error.status == 404 { return nil }
      throw error
    }
  }

  /// The file or folder `path` with its stamp. `status`: of `path`, whose folder is `folder`.
  static func item(_ status: stat, _ path: ServedPath, in folder: Folder) throws(ServerError) -> StoredItem {
    var item = try item(status, path)
    item.stamp = VersionStamp(status, of: path.name, in: folder)
    return item
  }

  private static func item(_ status: stat, _ path: ServedPath) throws(ServerError) -> StoredItem {
    let item = StoredItem(status)
    if item.isFolder || status.isFile { return item }
    throw ServerError(403, "\(path) is neither a file nor a folder; symbolic links are not followed")
  }

  package func open(_ path: ServedPath) throws(ServerError) -> OpenItem {
    if path.isRoot { throw ServerError(409, "/ is a folder") }
    let file = try folder(path.parent).open(path.name, O_RDONLY, as: path)
    var status = stat()
    if fstat(file.number, &status) != 0 { throw failed("look at", path.description) }
    var item = try Self.item(status, path)
    if item.isFolder { throw ServerError(409, "\(path) is a folder") }
    item.stamp = VersionStamp(status, of: file)
    return OpenItem(item: item, content: .file(file))
  }

  func removeOpenly(_ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void) throws(ServerError) {
    let folder = try self.folder(path.parent)
    try quota.changing { () throws(ServerError) in
      guard !path.isRoot, let status = try folder.status(path.name) else { throw ServerError(404, "no file \(path)") }
      let item = try Self.item(status, path)
      if item.isFolder { throw ServerError(409, "\(path) is a folder; only files can be deleted") }
      try check(item)
      if !folder.unlink(path.name) { throw failed("delete", path.description) }
      quota.remove(item.length)
    }
    try folder.sync(path.parent.description)
  }
}

/// The name of a file in `.fullbore`, parsed into upload id and kind.
struct UploadFile {
  enum Kind: String { case data, info, done, join, bad, group }
  var id: UploadID
  var kind: Kind

  init?(_ name: BytePath) {
    // Most names in a full folder have this form: 32 digits, a dot, three to five letters.
    guard 36...38 ~= name.bytes.count, name.bytes[32] == UInt8(ascii: "."),
      let id = UploadID(String(decoding: name.bytes[..<32], as: UTF8.self)),
      let kind = Kind(rawValue: String(decoding: name.bytes[33...], as: UTF8.self))
    else { return nil }
    self.id = id
    self.kind = kind
  }
}

/// A file whose name contains the offset of an upload's first provisional byte, which no checksum has verified yet. The
/// name is created before the bytes are written. The offset is in the name because a file's content could be lost in a
/// power failure.
struct ProvisionalMark {
  var id: UploadID
  var start: Int64
  var name: BytePath { BytePath("\(id).\(start).mark") }

  init(id: UploadID, start: Int64) { (self.id, self.start) = (id, start) }

  init?(_ name: BytePath) {
    let parts = name.description.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2] == "mark", let id = UploadID(parts[0]), let start = Int64(parts[1]), start >= 0
    else { return nil }
    self.init(id: id, start: start)
  }

  fileprivate func dropBytes(in store: Folder) throws(ServerError) {
    guard let status = try store.status(id.data), Int64(status.st_size) > start else { return }
    let file = try store.open(id.data, O_RDWR)
    if ftruncate(file.number, off_t(start)) != 0 { throw store.failed("drop bytes of upload", id.description) }
  }
}

extension UploadID {
  var data: BytePath { BytePath("\(self).data") }
  var info: BytePath { BytePath("\(self).info") }
  var done: BytePath { BytePath("\(self).done") }
  var join: BytePath { BytePath("\(self).join") }
  /// The members of a group that is being published.
  var group: BytePath { BytePath("\(self).group") }
  /// A damaged record that was set aside.
  var bad: BytePath { BytePath("\(self).bad") }
}
