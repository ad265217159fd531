import BlobCrypto
import BlobHTTP
import Blobs

/// The entries of a folder for scripts, as JSON: `{"entries":[…],"next":NAME,"archive":URL}`.
///
/// An entry has `name` (with U+FFFD for bytes that are not UTF-8), `folder`, `size` in bytes, `modified` in seconds since
/// 1970, `thumbnail`, the URL of its preview if its name is that of a photo, and `url`, which is relative to the folder's URL. The URL of a file has the ticket that it needs, and is null if
/// files cannot be read. `next` is the percent-encoded name for `after=` in the next request; null: there are no more names.
/// `archive` is the URL of the folder with all below as a ZIP; null: files cannot be read, or not at once.
enum FolderJSON {
  static func reply(_ path: ServedPath, _ list: FolderPage, _ call: RoutedRequest) -> Reply {
    let service = call.service
    let entries = list.entries.map { text($0, in: path, service) }
    let next = list.next.map { JSONText.quoted(HTTPURL.encode($0.bytes)) } ?? "null"
    let archive = archive(of: path, service).map(JSONText.quoted) ?? "null"
    var reply = Reply(
      200, json: "{\"entries\":[\(entries.joined(separator: ","))],\"next\":\(next),\"archive\":\(archive)}")
    // An open page asks every few seconds, and mostly has what it asks for.
    guard case .bytes(let bytes) = reply.body else { return reply }
    let digest = Digest(.sha256)
    bytes.withUnsafeBytes { digest.update($0) }
    let etag = "\"\(Digest.hex(digest.value().prefix(16)))\""
    reply.headers["ETag"] = etag
    if EntityTags("If-None-Match", of: call.headers)?.include(etag, weakly: true) == true {
      (reply.status, reply.body) = (304, .bytes([]))
    }
    return reply
  }

  private static func text(_ entry: StoredEntry, in folder: ServedPath, _ service: Service) -> String {
    let item = entry.item
    let url = url(of: entry, in: folder, service).map(JSONText.quoted) ?? "null"
    let thumbnail = thumbnail(of: entry, in: folder, service).map(JSONText.quoted) ?? "null"
    return "{\"name\":\(JSONText.quoted(entry.name.description)),\"url\":\(url),\"folder\":\(item.isFolder),"
      + "\"size\":\(item.isFolder ? 0 : item.length),\"modified\":\(item.modifiedSeconds),\"thumbnail\":\(thumbnail)}"
  }

  private static func archive(of folder: ServedPath, _ service: Service) -> String? {
    if service.options.reading != .files || service.store.abilities.archiving == nil { return nil }
    return "./?archive=zip" + (service.access.ticket(forArchiveOf: folder).map { "&ticket=\($0)" } ?? "")
  }

  private static func url(of entry: StoredEntry, in folder: ServedPath, _ service: Service) -> String? {
    if entry.item.isFolder { return entry.reference }
    guard service.options.reading == .files, let path = try? folder.appending(entry.name.bytes) else { return nil }
    return entry.reference + (service.access.ticket(for: path).map { "?ticket=\($0)" } ?? "")
  }

  /// Only the name is looked at, since opening each file would take long.
  private static func thumbnail(of entry: StoredEntry, in folder: ServedPath, _ service: Service) -> String? {
    guard service.options.thumbnail != nil, service.options.reading == .files, !entry.item.isFolder,
      MediaType(entry.name).mayHavePreview, let path = try? folder.appending(entry.name.bytes)
    else { return nil }
    return entry.reference + "?thumbnail" + (service.access.ticket(for: path).map { "&ticket=\($0)" } ?? "")
  }
}

extension StoredEntry {
  /// A relative reference to the entry from the URL of its folder. RFC 3986 §4.2.
  var reference: String {
    // Without `./`, a name like `a:b` would be parsed as a URL with a scheme.
    "./" + HTTPURL.encode(name.bytes) + (item.isFolder ? "/" : "")
  }
}

extension Reply {
  /// A response for scripts, which is not to be kept.
  init(_ status: Int, json: String) {
    self.init(
      status,
      ["Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"],
      body: .bytes(Array("\(json)\n".utf8)))
  }
}
