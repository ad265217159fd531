import BlobTesting
import TestSupport
import Blobs
import Foundation

/// The server of a column: Fullbore's if it supports that protocol, otherwise one in this process.
enum FaultServer: Sendable {
  case ours(ServeProcess)
  case dav(DavPeer)
  case s3(S3Peer)
  case gcs(CloudPeer)

  /// No other program gets the port once the server has ended.
  static func start(
    for column: FaultColumn, isFull: Bool, in scratch: Scratch
  ) async throws -> FaultServer {
    switch column {
    case .put, .tus, .resumable, .form:
      return .ours(
        try await ServeProcess.start(
          in: scratch, port: try freePort(),
          environment: isFull ? try Shim.environment(.fullDisk(at: 2 << 20), in: scratch) : [:]))
    case .dav: return .dav(DavPeer { isFull && $0.method == "PUT" ? .init(507) : nil })
    case .s3:
      var options = S3Peer.Options()
      options.refuse = { _, request in isFull && request.method == "PUT" ? (507, "InsufficientStorage") : nil }
      return .s3(S3Peer(options))
    case .gcs: return .gcs(CloudPeer(refuse: { isFull && $0.method == "PUT" ? .init(507) : nil }))
    }
  }

  var port: Int {
    switch self {
    case .ours(let server): server.port
    case .dav(let peer): Int(peer.endpoint.port)
    case .s3(let peer): peer.port
    case .gcs(let peer): Int(peer.endpoint.port)
    }
  }

  /// Ends with a slash.
  var url: String { "http://127.0.0.1:\(port)/" }

  /// The number of received bytes, whether they were stored or not.
  func received() -> Int64 {
    switch self {
    case .ours(let server): Int64(server.folder.received())
    case .dav(let peer): peer.unfinished()
    case .s3(let peer): peer.unfinished()
    case .gcs(let peer): peer.unfinished()
    }
  }

  func names() -> [String] {
    switch self {
    case .ours(let server): Array(server.folder.files().keys)
    case .dav(let peer): peer.names().map(\.description)
    case .s3(let peer): Array(peer.objects.keys)
    case .gcs(let peer): peer.names().map(\.description)
    }
  }

  func contents(_ name: String) -> Data? {
    switch self {
    case .ours(let server): FileManager.default.contents(atPath: "\(server.folder.path)/\(name)")
    case .dav(let peer): peer.contents(of: BytePath(name)).map { Data($0) }
    case .s3(let peer): peer.objects[name].map { Data($0.bytes) }
    case .gcs(let peer): peer.contents(of: BytePath(name)).map { Data($0) }
    }
  }

  func unfinished() -> Int64 {
    switch self {
    case .ours(let server): Int64(server.folder.unfinished())
    case .dav(let peer): peer.unfinished()
    case .s3(let peer): peer.unfinished()
    case .gcs(let peer): peer.unfinished()
    }
  }

  func kill() async throws {
    switch self {
    case .ours(let server):
      server.command.kill(SIGKILL)
      try await server.command.wait()
    case .dav(let peer): peer.stop()
    case .s3(let peer): peer.stop()
    case .gcs(let peer): peer.stop()
    }
  }

  func restarted(_ losingAll: Bool, in scratch: Scratch) async throws -> FaultServer {
    switch self {
    case .ours(let server):
      try await kill()
      if losingAll {
        try FileManager.default.moveItem(atPath: server.folder.path, toPath: scratch.newPath("lost"))
      }
      return .ours(try await server.startAgain(in: scratch))
    case .dav(let peer):
      // An interrupted PUT has left nothing there.
      peer.restart()
      return self
    case .s3(let peer):
      if losingAll { peer.change { $0.uploads = [:] } }
      peer.restart()
      return self
    case .gcs(let peer):
      if losingAll { peer.forgetUploads() }
      peer.restart()
      return self
    }
  }
}
