import Blobs
import Platform

extension FileStore {
  package func list(
    _ path: ServedPath, after start: BytePath?, atMost limit: Int
  ) throws(ServerError) -> FolderPage {
    let folder = try self.folder(path)
    let (names, hasMore) = try firstNames(of: folder, after: start, atMost: limit)
    var entries: [StoredEntry] = []
    for name in names {
      if interruption.isCancelled { throw ServerError(503, "the server is stopping") }
      // If the entry was deleted meanwhile, or cannot be accessed any more, it is left out.
      guard let status = try? folder.status(name) else { continue }
      let item = StoredItem(status)
      if item.isFolder || status.isFile { entries.append(StoredEntry(name: name, item: item)) }
    }
    return FolderPage(entries: entries, next: hasMore ? names.last : nil, isFirst: start == nil)
  }

  package func count(_ path: ServedPath) throws(ServerError) -> Int {
    let folder = try self.folder(path)
    var count = 0
    try folder.forEachName { name in
      if name.bytes.first == UInt8(ascii: ".") { return }
      // As in a list, an entry that was deleted meanwhile is left out.
      if let status = try? folder.status(name), status.isFile { count += 1 }
    }
    return count
  }

  /// The first `limit` names after `start`, sorted, and whether there are more. At most twice as many are in memory at a
  /// time.
  private func firstNames(
    of folder: Folder, after start: BytePath?, atMost limit: Int
  ) throws(ServerError) -> (names: [BytePath], hasMore: Bool) {
    var names: [BytePath] = []
    var hasMore = false
    func cut() {
      names.sort()
      if names.count <= limit { return }
      names.removeLast(names.count - limit)
      hasMore = true
    }
    try folder.forEachName { name in
      if name.bytes.first == UInt8(ascii: ".") { return }
      if let start, name <= start { return }
      if hasMore, names.count >= limit, name > names[limit - 1] { return }
      names.append(name)
      if names.count == 2 * limit { cut() }
    }
    cut()
    return (names, hasMore)
  }
}

extension FileStore {
  package var free: Int64? {
    let onDisk = root.free
    guard let inQuota = quota.free else { return onDisk }
    return onDisk.map { min($0, inQuota) } ?? inQuota
  }

  package var isBoundByLimit: Bool { quota.free.map { $0 <= root.free ?? .max } ?? false }

  package func takeRefusal() -> Bool { quota.takeRefusal() }
}

extension FileStore {
  /// Does not tell where the folder is, because whoever asks for `/healthz` may read it.
  package var problem: String? { foundProblem.map { $0.replacing("\(path)", with: "the served folder") } }

  private var foundProblem: String? {
    if let trouble = trouble.withLock({ $0 }) { return trouble }
    guard let store else { return nil }  // a read-only server does not write
    for folder in [root, store] {
      if folder.isDeleted { return "\(path) was deleted" }
      if let reason = folder.problemOfWriting() {
        return "\(path) cannot be written: \(String(cString: strerror(reason)))"
      }
    }
    return root.free == 0 ? "the disk of \(path) is full" : nil
  }
}

extension Folder {
  /// If the status cannot be read, every request reports that.
  var isDeleted: Bool { (try? status())?.st_nlink == 0 }

  /// How many more bytes can be stored on its disk; nil: the system does not tell.
  fileprivate var free: Int64? {
    var status = statvfs()
    if fstatvfs(number, &status) != 0 { return nil }
    return Int64(clamping: UInt128(status.f_bavail) * UInt128(status.f_frsize))
  }
}
