import BlobCrypto
import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Synchronization

/// An in-memory server that composes files from blocks, and refuses malformed requests.
final class BlockServer: ProtocolPeer {
  private let files: Files
  private let peer: HTTPPeer

  init() {
    let files = Files()
    self.files = files
    peer = HTTPPeer { files.answer($0) }
  }

  var endpoint: HTTPURL { peer.url }
  func contents(of name: BytePath) -> [UInt8]? { files.state.withLock { $0.files[name]?.bytes } }
  func names() -> [BytePath] { files.state.withLock { Array($0.files.keys) } }
  func unfinished() -> Int64 {
    files.state.withLock { $0.open.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + Int64($1.count) } } }
  }
  /// Closes the connections and keeps the files and blocks.
  func restart() { peer.cutAll() }
  func stop() { peer.stop() }
}

/// The files and blocks of a `BlockServer`, and its request handlers. A lock guards them, because each connection has
/// its own thread.
private final class Files: Sendable {
  struct File {
    var bytes: [UInt8]
    /// ID and size of each block; empty for a file that was sent in one request.
    var blocks: [(id: String, size: Int)] = []
  }
  struct State {
    var files: [BytePath: File] = [:]
    /// Uncommitted blocks by ID.
    var open: [BytePath: [String: [UInt8]]] = [:]
  }
  let state = Mutex(State())

  func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
    guard let url = HTTPURL("http://server\(request.path)"), !url.lastComponent.isEmpty else { return .init(404) }
    if request.headers["Transfer-Encoding"] != nil { return .init(411) }
    let name = BytePath(url.lastComponent)
    let query = (request.query ?? "").split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let value = query.count > 1 ? String(query[1]) : nil
    return state.withLock { state in
      switch (request.method, query.first ?? "", value) {
      case ("HEAD", "", nil): Self.head(name, state)
      case ("PUT", "", nil): Self.publish(File(bytes: request.body), request, name, &state)
      case ("PUT", "block", let id?): Self.take(request.body, id, name, &state)
      case ("PUT", "commit", nil): Self.commit(request, name, &state)
      case ("GET", "blocks", nil): Self.list(name, state)
      case ("DELETE", "blocks", let prefix?): Self.delete(prefix, name, &state)
      default: .init(400)
      }
    }
  }

  private static func head(_ name: BytePath, _ state: State) -> HTTPPeer.Reply {
    guard let file = state.files[name], let sha256 = Digest.Algorithm("sha256") else { return .init(404) }
    let digest = Data(Digest.value(of: file.bytes, sha256)).base64EncodedString()
    return .init(200, ["Repr-Digest": "sha-256=:\(digest):"], file.bytes)
  }

  private static func publish(
    _ file: File, _ request: HTTPPeer.Request, _ name: BytePath, _ state: inout State
  ) -> HTTPPeer.Reply {
    if request.headers["If-None-Match"] == "*", state.files[name] != nil { return .init(412) }
    state.files[name] = file
    // As in Azure, a commit deletes blocks that are not part of the file.
    state.open[name] = nil
    return .init(201)
  }

  private static func take(
    _ bytes: [UInt8], _ id: String, _ name: BytePath, _ state: inout State
  ) -> HTTPPeer.Reply {
    let others = state.open[name]?.keys.first
    guard 1...64 ~= id.utf8.count, others == nil || others?.utf8.count == id.utf8.count else { return .init(400) }
    guard 1...(100 << 20) ~= bytes.count else { return .init(413) }
    state.open[name, default: [:]][id] = bytes
    return .init(201)
  }

  private static func commit(
    _ request: HTTPPeer.Request, _ name: BytePath, _ state: inout State
  ) -> HTTPPeer.Reply {
    let ids = String(decoding: request.body, as: UTF8.self).split(separator: "\n").map(String.init)
    guard !ids.isEmpty, Set(ids).count == ids.count else { return .init(400) }
    var file = File(bytes: [])
    for id in ids {
      guard let block = state.open[name]?[id] else { return .init(400, [:], Array("block \(id) is missing".utf8)) }
      file.bytes += block
      file.blocks.append((id, block.count))
    }
    return publish(file, request, name, &state)
  }

  private static func list(_ name: BytePath, _ state: State) -> HTTPPeer.Reply {
    let committed = state.files[name]?.blocks.map { "committed \($0.id) \($0.size)\n" } ?? []
    let open = state.open[name]?.map { "open \($0.key) \($0.value.count)\n" } ?? []
    if state.files[name] == nil, open.isEmpty { return .init(404) }
    return .init(200, ["Content-Type": "text/plain"], Array((committed + open.sorted()).joined().utf8))
  }

  private static func delete(_ prefix: String, _ name: BytePath, _ state: inout State) -> HTTPPeer.Reply {
    guard let open = state.open[name] else { return .init(404) }
    let left = open.filter { !$0.key.hasPrefix(prefix) }
    state.open[name] = left.isEmpty ? nil : left
    return .init(204)
  }
}
