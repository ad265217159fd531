import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs

extension S3Store {
  package func item(at path: ServedPath) throws(ServerError) -> StoredItem? {
    if path.isRoot { return .folder }
    if let head = try head(of: path) { return StoredItem(head) }
    let folder = bucket.folder(path)
    let page = try bucket.wait { s3, context async throws(UploadError) in
      try await s3.page(of: folder, most: 1, context)
    }
    return page?.entries.isEmpty == false ? .folder : nil
  }

  /// nil: no object has this name.
  func head(of path: ServedPath) throws(ServerError) -> S3Head? {
    let url = bucket.url(of: path)
    return try bucket.wait { s3, context async throws(UploadError) in try await s3.head(of: url, context) }
  }

  package func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState {
    try concealment.target(at: path, in: folder) { () throws(ServerError) in try target(at: path) }
  }

  private func target(at path: ServedPath?) throws(ServerError) -> TargetState {
    guard let path else { return TargetState() }
    if path.isRoot { return TargetState(item: .folder) }
    guard String(validating: path.bytes, as: UTF8.self) != nil else {
      throw ServerError(400, "\(path): a name in S3 is UTF-8")
    }
    return TargetState(item: try head(of: path).map { StoredItem($0) })
  }

  package func open(_ path: ServedPath) throws(ServerError) -> OpenItem {
    if !path.isRoot, let head = try head(of: path) {
      let content = S3Content(bucket: bucket, url: bucket.url(of: path), tag: head.tag)
      return OpenItem(item: StoredItem(head), content: .remote(content))
    }
    if try item(at: path)?.isFolder == true { throw ServerError(409, "\(path) is a folder") }
    throw ServerError(404, "nothing is at \(path)")
  }

  package func remove(
    _ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void
  ) throws(ServerError) {
    guard !path.isRoot, let head = try head(of: path) else { throw ServerError(404, "no file \(path)") }
    try check(StoredItem(head))
    let url = bucket.url(of: path)
    try bucket.wait { s3, context async throws(UploadError) in try await s3.delete(url, context) }
    quota.remove(head.length)
  }

  // MARK: Lists

  package func list(
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

  package func count(_ folder: ServedPath) throws(ServerError) -> Int {
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
      try check()
      let page = try bucket.wait { [cursor] s3, context async throws(UploadError) in
        try await s3.page(of: url, after: cursor, context)
      }
      guard let page else { throw ServerError(501, "the place where this server stores its files lists no folders") }
      if !page.entries.isEmpty { isEmpty = false }
      take(page.entries)
      cursor = page.next
    } while cursor != nil
    if !isEmpty || folder.isRoot { return }
    if try head(of: folder) != nil { throw ServerError(409, "\(folder) is a file") }
    throw ServerError(404, "no folder \(folder)")
  }

  // MARK: Digests

  package func digest(
    of file: OpenItem, _ algorithm: Digest.Algorithm, fromDisk _: Bool, while isWanted: () -> Bool
  ) throws(ServerError) -> [UInt8]? {
    guard case .remote(let content) = file.content else { preconditionFailure("a file of another store") }
    let digest = Digest(algorithm)
    let isWhole = try read(content, file.item.length) { bytes in
      digest.update(bytes)
      return isWanted()
    }
    return isWhole ? digest.value() : nil
  }

  /// Reads an object from its first byte. Returns false if `take` did.
  func read(
    _ content: any RemoteContent, _ length: Int64, _ take: (UnsafeRawBufferPointer) -> Bool
  ) throws(ServerError) -> Bool {
    if length == 0 { return true }
    let feed = content.start(0..<length)
    defer { feed.stop() }
    while true {
      try check()
      switch feed.waitForNext() {
      case .bytes(let bytes): if !bytes.withUnsafeBytes(take) { return false }
      case .end: return true
      case .failed, .nothing: throw ServerError(503, "the server's store has not given all bytes of a file")
      }
    }
  }
}

/// An object, to be read in ranges.
struct S3Content: RemoteContent {
  let bucket: S3Bucket
  let url: HTTPURL
  let tag: String

  func start(_ range: Range<Int64>) -> ContentFeed {
    let feed = ContentFeed()
    Task { [bucket, url, tag] in
      do throws(UploadError) {
        try await bucket.s3.read(url, range, of: tag, bucket.context) { bytes throws(BlobError) in
          if !feed.write(bytes) { throw BlobError(.cancelled, "the client has gone") }
        }
        feed.finish(isWhole: true)
      } catch {
        feed.finish(isWhole: false)
      }
    }
    return feed
  }
}

extension StoredItem {
  /// S3 has no inodes: the ETag tells versions apart, and two objects with the same ETag have the same bytes.
  init(_ head: S3Head) {
    self.init(
      length: head.length, tag: head.tag, head.fileTime.flatMap { ModificationTime($0.utf8) }, head.modified ?? 0)
  }

  /// A list does not tell the times that clients have sent.
  init(_ entry: S3Entry) {
    self = entry.isFolder ? .folder : StoredItem(length: entry.length, tag: entry.tag ?? "", nil, entry.modified ?? 0)
  }

  /// `modified`: what the client has sent. `stored`: when the object was made, in seconds since 1970.
  init(length: Int64, tag: String, _ modified: ModificationTime?, _ stored: Int64) {
    let digest = Digest.value(of: Array(tag.utf8), .sha256)
    let version = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.init(
      isFolder: false, length: length, modified: modified?.sinceEpoch ?? stored.multipliedClamped(by: 1_000_000_000),
      modifiedSeconds: modified?.seconds ?? stored, changed: 0, inode: version)
  }

  static let folder = StoredItem(isFolder: true, length: 0, modified: 0, modifiedSeconds: 0, changed: 0, inode: 0)
}
