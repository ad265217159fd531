import BlobHTTP
import Blobs

/// A WebDAV server that is as strict as RFC 4918 has it: no folder comes by itself, and `Overwrite: F` is heeded.
public final class DavPeer: ProtocolPeer {
  /// What it answers instead of doing it; nil: does it.
  public typealias Refusal = @Sendable (HTTPPeer.Request) -> HTTPPeer.Reply?

  private let files: PublishedNames
  private let folders: Monitor<Set<BytePath>>
  private let peer: HTTPPeer

  public init(refusing refusal: @escaping Refusal = { _ in nil }) {
    let files = PublishedNames()
    let folders = Monitor<Set<BytePath>>([BytePath("")])
    (self.files, self.folders) = (files, folders)
    peer = HTTPPeer { request in
      if let refusal = refusal(request) { return refusal }
      return Self.answer(request, files, folders)
    }
  }

  public var endpoint: HTTPURL { peer.url }
  public func contents(of name: BytePath) -> [UInt8]? { files[name] }
  public func names() -> [BytePath] { files.all.filter { !Self.isTemporary($0) } }
  public func unfinished() -> Int64 {
    peer.arriving + files.all.filter(Self.isTemporary).reduce(0) { $0 + Int64(files[$1]?.count ?? 0) }
  }
  public func restart() { peer.cutAll() }
  public func stop() { peer.stop() }

  /// `PUT /a`, in the order they came.
  public var requests: [String] { peer.requests }

  private static func isTemporary(_ name: BytePath) -> Bool {
    let last = name.name.description
    return last.hasPrefix(".fullbore-") && last.hasSuffix(".part")
  }

  private static func answer(
    _ request: HTTPPeer.Request, _ files: PublishedNames, _ folders: Monitor<Set<BytePath>>
  ) -> HTTPPeer.Reply {
    let name = name(request.path)
    let isFolder = folders.update(waking: .none) { $0.contains(name) }
    func hasParent(_ name: BytePath) -> Bool {
      let parent = BytePath(name.components.dropLast().map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
      return folders.update(waking: .none) { $0.contains(parent) }
    }
    switch request.method {
    case "OPTIONS": return .init(200, ["DAV": "1, 2"])
    case "GET", "HEAD":
      guard let bytes = files[name] else { return .init(404) }
      return .init(200, ["ETag": tag(bytes)], bytes)
    case "PUT":
      if isFolder { return .init(405) }
      if !hasParent(name) { return .init(409) }
      let old = files[name]
      if request.headers["If-None-Match"] == "*", old != nil { return .init(412) }
      _ = files.publish(request.body, as: name, overwrites: true)
      return .init(old == nil ? 201 : 204, ["ETag": tag(request.body)])
    case "MKCOL":
      if isFolder || files[name] != nil { return .init(405) }
      if !hasParent(name) { return .init(409) }
      folders.update { _ = $0.insert(name) }
      return .init(201)
    case "MOVE":
      guard let place = request.headers["Destination"].flatMap({ HTTPURL($0) }) else { return .init(400) }
      let target = Self.name(place.path)
      if !hasParent(target) { return .init(409) }
      guard let bytes = files[name] else { return .init(404) }
      let old = files[target]
      if old != nil, request.headers["Overwrite"] == "F" { return .init(412) }
      _ = files.publish(bytes, as: target, overwrites: true)
      files.remove(name)
      return .init(old == nil ? 201 : 204)
    case "DELETE": return .init(files.remove(name) == nil ? 404 : 204)
    default: return .init(501)
    }
  }

  private static func name(_ path: String) -> BytePath {
    let components = BytePath(percentDecoded(path.utf8)).components
    return BytePath(components.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }

  private static func tag(_ bytes: [UInt8]) -> String { "\"\(Digest.hex(of: bytes, .sha256).prefix(32))\"" }
}
