import BlobTesting
import BlobCrypto
import BlobHTTP
import Blobs

/// Files and folders below a path, as RFC 4918 defines them: folders are not created implicitly, and `Overwrite: F` is
/// respected.
final class DavStore: Sendable {
  let files = PublishedNames()
  private let folders = Monitor<Set<BytePath>>([BytePath("")])
  private let root: String

  private let tagsBeforeTime: Bool
  private let heedsConditions: Bool
  private let tellsProperties: Bool
  private let deletesBeforeMove: Bool

  /// - `root`: the path of all names; "" or a path without a slash at its end.
  /// - `tagsBeforeTime`: the ETag in the response to PUT is that of the file before its modification time was set.
  /// - `heedsConditions`: `If-None-Match` and `Overwrite: F` protect existing files.
  /// - `tellsProperties`: PROPFIND is supported.
  /// - `deletesBeforeMove`: a MOVE that may replace a file deletes it before it finds that its source is gone.
  init(
    root: String = "", tagsBeforeTime: Bool = false, heedsConditions: Bool = true, tellsProperties: Bool = true,
    deletesBeforeMove: Bool = false
  ) {
    (self.root, self.tagsBeforeTime, self.heedsConditions) = (root, tagsBeforeTime, heedsConditions)
    self.tellsProperties = tellsProperties
    self.deletesBeforeMove = deletesBeforeMove
  }

  /// All names except those of temporary files.
  func names() -> [BytePath] { files.all.filter { !Self.isTemporary($0) } }
  func unfinished() -> Int64 {
    files.all.filter(Self.isTemporary).reduce(0) { $0 + Int64(files[$1]?.count ?? 0) }
  }

  private static func isTemporary(_ name: BytePath) -> Bool {
    let last = name.name.description
    return last.hasPrefix(".fullbore-") && last.hasSuffix(".tmp")
  }

  func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
    let name = name(request.path)
    switch request.method {
    case "OPTIONS": return .init(200, ["DAV": "1, 2"])
    case "GET", "HEAD":
      if let bytes = files[name] { return .init(200, ["ETag": tag(bytes)], bytes) }
      if name.isEmpty || !isFolder(name) { return .init(404) }
      if !request.path.hasSuffix("/") { return .init(301, ["Location": request.path + "/"]) }
      return .init(200, ["Content-Type": "text/html"], Array("a page".utf8))
    case "PROPFIND":
      if !tellsProperties { return .init(405) }
      if files[name] == nil && !isFolder(name) { return .init(404) }
      let below =
        request.headers["Depth"] == "1" ? files.all.filter { Self.joined($0.components.dropLast()) == name } : []
      let base = request.path.hasSuffix("/") ? request.path : request.path + "/"
      let responses =
        [properties(of: name, at: request.path)]
        + below.map { properties(of: $0, at: base + HTTPURL.encode($0.name.bytes)) }
      return .init(
        207, ["Content-Type": "application/xml"],
        Array(
          "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">\(responses.joined())</D:multistatus>".utf8))
    case "PUT":
      if isFolder(name) { return .init(405) }
      if !hasParent(name) { return .init(409) }
      let old = files[name]
      if heedsConditions, request.headers["If-None-Match"] == "*", old != nil { return .init(412) }
      _ = files.publish(request.body, as: name, overwrites: true)
      let hasOtherTag = tagsBeforeTime && request.headers["X-OC-MTime"] != nil
      return .init(old == nil ? 201 : 204, ["ETag": hasOtherTag ? "\"of the time before\"" : tag(request.body)])
    case "MKCOL":
      if isFolder(name) || files[name] != nil { return .init(405) }
      if !hasParent(name) { return .init(409) }
      folders.update { _ = $0.insert(name) }
      return .init(201)
    case "MOVE":
      guard let place = request.headers["Destination"].flatMap({ HTTPURL($0) }) else { return .init(400) }
      if deletesBeforeMove, request.headers["Overwrite"] == "T" { files.remove(self.name(place.path)) }
      guard let bytes = files[name] else { return .init(deletesBeforeMove ? 403 : 404) }
      let reply = publish(bytes, at: place.path, overwrites: request.headers["Overwrite"] != "F")
      if reply.status < 300 { files.remove(name) }
      return reply
    case "DELETE": return .init(files.remove(name) == nil ? 404 : 204)
    default: return .init(501)
    }
  }

  private func properties(of name: BytePath, at path: String) -> String {
    let length = files[name].map { "<D:getcontentlength>\($0.count)</D:getcontentlength>" } ?? ""
    let type = files[name] == nil ? "<D:collection/>" : ""
    return "<D:response><D:href>\(path)</D:href><D:propstat><D:prop><D:resourcetype>\(type)</D:resourcetype>\(length)"
      + "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
  }

  /// Stores `bytes` at `path`, as MOVE does: it deletes a folder of that name with all that it contains.
  func publish(_ bytes: [UInt8], at path: String, overwrites: Bool) -> HTTPPeer.Reply {
    let target = name(path)
    if !hasParent(target) { return .init(409) }
    let old = files[target]
    if old != nil || isFolder(target), !overwrites, heedsConditions { return .init(412) }
    if isFolder(target) {
      folders.update { folders in folders = folders.filter { !$0.bytes.starts(with: target.bytes) } }
      for name in files.all where name.bytes.starts(with: target.bytes + [UInt8(ascii: "/")]) { files.remove(name) }
    }
    _ = files.publish(bytes, as: target, overwrites: true)
    return .init(old == nil ? 201 : 204)
  }

  /// Makes a folder as another client would.
  func makeFolder(_ name: BytePath) { folders.update { _ = $0.insert(name) } }

  /// Whether the parent folder of a path exists.
  func hasFolder(for path: String) -> Bool { hasParent(name(path)) }

  private func isFolder(_ name: BytePath) -> Bool { folders.update(waking: .none) { $0.contains(name) } }

  private func hasParent(_ name: BytePath) -> Bool { isFolder(Self.joined(name.components.dropLast())) }

  private func name(_ path: String) -> BytePath {
    Self.joined(BytePath(percentDecoded(path.dropFirst(root.count).utf8)).components[...])
  }

  private static func joined(_ components: ArraySlice<BytePath>) -> BytePath {
    BytePath(components.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }

  private func tag(_ bytes: [UInt8]) -> String { "\"\(Digest.hex(of: bytes, .sha256).prefix(32))\"" }
}
