import Blobs
import Platform

/// Lists folders of a store in a folder.
struct FolderLister: FolderListing {
  let served: ServedFolder
  let interruption: Cancellation

  package func list(
    _ path: ServedPath, after start: BytePath?, atMost limit: Int
  ) throws(ServerError) -> FolderPage {
    let folder = try served.folder(path)
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
    let folder = try served.folder(path)
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
