import BlobServer
import BlobUpload
import Blobs

/// Lists the objects of a bucket as folders.
struct S3Lister: FolderListing {
  let bucket: S3Bucket
  let interruption: Cancellation

  func list(
    _ folder: ServedPath, after start: BytePath?, atMost limit: Int
  ) throws(ServerError) -> FolderPage {
    var entries: [StoredEntry] = []
    var hasMore = false
    /// Keeps the first ones only. The bucket's order is that of whole keys, in which a folder's name ends in a slash.
    func cut() {
      entries.sort { $0.name < $1.name }
      if entries.count <= limit { return }
      entries.removeLast(entries.count - limit)
      hasMore = true
    }
    try forEachPage(of: folder) { page in
      for entry in page where entry.name.bytes.first != UInt8(ascii: ".") {
        if let start, entry.name <= start { continue }
        if hasMore, entries.count >= limit, entry.name > entries[limit - 1].name { continue }
        entries.append(StoredEntry(name: entry.name, item: StoredItem(entry)))
        if entries.count >= 2 * limit { cut() }
      }
    }
    cut()
    return FolderPage(
      entries: entries, next: hasMore ? entries.last?.name : nil, isFirst: start == nil)
  }

  func count(_ folder: ServedPath) throws(ServerError) -> Int {
    var count = 0
    try forEachPage(of: folder) { page in
      count += page.count { !$0.isFolder && $0.name.bytes.first != UInt8(ascii: ".") }
    }
    return count
  }

  /// Throws 404 if no object is below the folder.
  private func forEachPage(of folder: ServedPath, _ take: ([S3Entry]) -> Void) throws(ServerError) {
    let url = bucket.folder(folder)
    var (cursor, isEmpty): (S3Cursor?, Bool) = (nil, true)
    repeat {
      try interruption.checkServer()
      let page = try bucket.wait { [cursor] s3, context async throws(UploadError) in
        try await s3.page(of: url, after: cursor, context)
      }
      guard let page else { throw ServerError(501, "the place where this server stores its files lists no folders") }
      if !page.entries.isEmpty { isEmpty = false }
      take(page.entries)
      cursor = page.next
    } while cursor != nil
    if !isEmpty || folder.isRoot { return }
    if try bucket.head(of: folder) != nil { throw ServerError(409, "\(folder) is a file") }
    throw ServerError(404, "no folder \(folder)")
  }
}
