import BlobTesting
import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// A server, or a proxy before it, redirects the PUTs of several names to one URL.
  @Suite(.serialized) struct RedirectedPutTests {
    let scratch = try! Scratch()

    /// The second file would replace the first one, and both would count as sent.
    @Test func aFileDoesNotReplaceAnotherOneByARedirect() async throws {
      for (index, name) in ["a.JPG", "b.JPG", "c.JPG"].enumerated() {
        try scratch.file("card/\(name)", 20_000, seed: UInt64(index))
      }
      let stored = Stored()
      let peer = HTTPPeer { request in
        switch request.method {
        case "PUT" where request.path == "/store": return stored.put(request.body)
        case "PUT": return .init(307, ["Location": "/store"])
        case "HEAD" where request.path == "/store", "GET" where request.path == "/store": return stored.get
        default: return .init(404)
        }
      }
      defer { peer.stop() }
      let (end, push) = try await fullbore(
        "push", "--jobs", "1", scratch.path("card/"), "put+\(peer.url)in/", in: scratch)
      #expect(end == .exited(1), "\(push.output)\(push.errors)")
      #expect(stored.count == 1)
      #expect(push.errors.components(separatedBy: "would replace the other").count == 3, "\(push.errors)")
      #expect(push.output.contains("1 file sent") && push.output.contains("2 failed"), "\(push.output)")
    }
  }
}

/// The content of one URL.
private final class Stored: Sendable {
  private let versions = Mutex<[[UInt8]]>([])
  var count: Int { versions.withLock { $0.count } }

  func put(_ body: [UInt8]) -> HTTPPeer.Reply {
    versions.withLock { $0.append(body) }
    return .init(201)
  }

  var get: HTTPPeer.Reply { versions.withLock { $0.last.map { .init(200, [:], $0) } ?? .init(404) } }
}
