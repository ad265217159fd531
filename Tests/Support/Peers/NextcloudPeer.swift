import BlobTesting
import BlobHTTP
import Blobs

/// A server for Nextcloud's chunked upload, version 2, that refuses malformed requests. Below
/// `/remote.php/dav/files/me/` it behaves like a `DavPeer`.
public final class NextcloudPeer: ProtocolPeer {
  private static let root = "/remote.php/dav/files/me"
  private static let uploads = "/remote.php/dav/uploads/me/"
  private static let smallest = 5 << 20

  /// The chunks of each upload, by their number.
  private typealias Uploads = Monitor<[String: [Int: [UInt8]]]>

  private let store: DavStore
  private let chunks: Uploads
  private let peer: HTTPPeer

  public init(heedsConditions: Bool = true, refusing refusal: @escaping DavPeer.Refusal = { _ in nil }) {
    let (store, chunks) = (DavStore(root: Self.root, heedsConditions: heedsConditions), Uploads([:]))
    (self.store, self.chunks) = (store, chunks)
    peer = HTTPPeer { request in
      if let refusal = refusal(request) { return refusal }
      if let reply = Self.refusal(of: request) { return reply }
      if request.path.hasPrefix(Self.uploads) { return Self.answer(request, store, chunks) }
      return request.path.hasPrefix(Self.root + "/") || request.method == "OPTIONS"
        ? store.answer(request) : .init(403)
    }
  }

  /// Calls `change` with the server when a chunk with this number arrives, as if another client changed its files then.
  public convenience init(
    heedsConditions: Bool = true, atChunk number: Int, _ change: @escaping @Sendable (NextcloudPeer) -> Void
  ) {
    let holder = Monitor(Holder())
    self.init(heedsConditions: heedsConditions) { request in
      guard request.method == "PUT", request.path.hasSuffix("/0000\(number)") else { return nil }
      if let peer = holder.update({ $0.peer }) { change(peer) }
      return nil
    }
    holder.update { $0.peer = self }
  }

  private struct Holder {
    weak var peer: NextcloudPeer?
  }

  public var endpoint: HTTPURL { peer.url.resolve(Self.root + "/")! }
  public func contents(of name: BytePath) -> [UInt8]? { store.files[name] }
  /// Stores a file as another client would.
  public func publish(_ bytes: [UInt8], as name: BytePath) {
    _ = store.files.publish(bytes, as: name, overwrites: true)
  }
  /// Makes a folder as another client would.
  public func makeFolder(_ name: BytePath) { store.makeFolder(name) }
  public func names() -> [BytePath] { store.names() }
  public func unfinished() -> Int64 {
    let kept = chunks.update(waking: .none) { $0.values.flatMap(\.values).reduce(0) { $0 + Int64($1.count) } }
    return peer.arriving + kept + store.unfinished()
  }
  public func restart() { peer.cutAll() }
  public func stop() { peer.stop() }
  public var requests: [String] { peer.requests }

  /// Refuses names that Nextcloud 32 refuses, with the same messages. Nextcloud does not always report why a name is
  /// invalid.
  private static func refusal(of request: HTTPPeer.Request) -> HTTPPeer.Reply? {
    let place: String?
    switch request.method {
    case "PUT", "MKCOL": place = request.path
    case "MOVE": place = request.headers["Destination"].flatMap { HTTPURL($0) }?.path
    default: place = nil
    }
    guard let place, place.hasPrefix(root + "/") else { return nil }
    let name = percentDecoded((place.split(separator: "/").last ?? "").utf8)
    let text = String(decoding: name, as: UTF8.self)
    var reason: String?
    for suffix in [".part", ".filepart"] where text.hasSuffix(suffix) {
      reason = "\"\(suffix)\" is a forbidden file type."
    }
    if text == ".htaccess" { reason = "Filename is a reserved word" }
    if name.count > 250 { reason = "Filename is too long" }
    if name.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\\") }) { reason = "" }
    guard let reason else { return nil }
    let xml =
      "<?xml version=\"1.0\"?><d:error xmlns:d=\"DAV:\" xmlns:s=\"http://sabredav.org/ns\">"
      + "<s:exception>OCA\\DAV\\Connector\\Sabre\\Exception\\InvalidPath</s:exception><s:message>\(reason)</s:message></d:error>"
    return .init(400, ["Content-Type": "application/xml; charset=utf-8"], Array(xml.utf8))
  }

  private static func answer(_ request: HTTPPeer.Request, _ store: DavStore, _ chunks: Uploads) -> HTTPPeer.Reply {
    let words = request.path.dropFirst(uploads.count).split(separator: "/").map(String.init)
    guard let token = words.first else { return .init(403) }
    let isThere = chunks.update(waking: .none) { $0[token] != nil }
    let destination = request.headers["Destination"].flatMap { HTTPURL($0) }?.path
    switch (request.method, words.count) {
    case ("MKCOL", 1):
      guard let destination, destination.hasPrefix(root + "/") else { return .init(400) }
      if isThere { return .init(405) }
      chunks.update { $0[token] = [:] }
      return .init(201)
    case _ where !isThere: return .init(404)
    case ("PUT", 2):
      guard let number = Int(words[1]), 1...10_000 ~= number, destination != nil,
        request.headers["OC-Total-Length"] != nil
      else { return .init(400) }
      if let destination, !store.hasFolder(for: destination) { return .init(404) }
      let old = chunks.update { $0[token]!.updateValue(request.body, forKey: number) }
      return .init(old == nil ? 201 : 204)
    case ("PROPFIND", 1):
      let found = chunks.update(waking: .none) { $0[token]! }
      let folder = "<d:response><d:href>\(uploads)\(token)/</d:href><d:propstat/></d:response>"
      let entries = found.keys.sorted().map { number in
        let name = String(repeating: "0", count: 5 - String(number).count) + String(number)
        return "<d:response><d:href>\(uploads)\(token)/\(name)</d:href><d:propstat><d:prop><d:getcontentlength>"
          + "\(found[number]!.count)</d:getcontentlength></d:prop></d:propstat></d:response>"
      }
      let text = "<?xml version=\"1.0\"?>\n<d:multistatus xmlns:d=\"DAV:\">\(folder)\(entries.joined())</d:multistatus>"
      return .init(207, [:], Array(text.utf8))
    case ("MOVE", 2) where words[1] == ".file":
      let found = chunks.update(waking: .none) { $0[token]! }
      let bytes = found.keys.sorted().flatMap { found[$0]! }
      let isCut = found.keys.sorted().dropLast().contains { found[$0]!.count < smallest }
      guard let destination, request.headers["OC-Total-Length"] == String(bytes.count), !isCut else {
        return .init(400)
      }
      let reply = store.publish(bytes, at: destination, overwrites: request.headers["Overwrite"] != "F")
      if reply.status < 300 { chunks.update { $0[token] = nil } }
      return reply
    case ("DELETE", 1):
      chunks.update { $0[token] = nil }
      return .init(204)
    default: return .init(405)
    }
  }
}
