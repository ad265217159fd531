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
        case "PUT" where request.path == "/store": return stored.put(request)
        case "PUT": return .init(307, ["Location": "/store"])
        case "HEAD" where request.path == "/store", "GET" where request.path == "/store": return stored.get(request)
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

    /// A server that redirects the PUT of one name to the URL of another one.
    private func peerThatRedirectsOne(_ stored: Stored, to place: String = "/in/b.JPG") -> HTTPPeer {
      HTTPPeer { request in
        switch (request.method, request.path) {
        case ("PUT", "/in/a.JPG"): .init(307, ["Location": place])
        case ("PUT", _): stored.put(request)
        default: stored.get(request)
        }
      }
    }

    private func push(to peer: HTTPPeer, _ options: [String]) async throws -> Command {
      for (index, name) in ["a.JPG", "b.JPG"].enumerated() {
        try scratch.file("card/\(name)", 20_000, seed: UInt64(index))
      }
      let push = try Command(
        Tool.fullbore,
        ["push", "--journal", scratch.newPath("journal")] + options + [scratch.path("card/"), "put+\(peer.url)in/"],
        in: scratch)
      try await push.wait()
      return push
    }

    /// The server redirects the PUT of one name to the URL of another file of the same push.
    @Test(arguments: [["--jobs", "1"], [], ["--overwrite"]])
    func redirectToAnotherFileOfThePushLosesNone(_ options: [String]) async throws {
      for _ in 0..<4 {
        let stored = Stored()
        let peer = peerThatRedirectsOne(stored)
        defer { peer.stop() }
        let push = try await push(to: peer, options)
        #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
        #expect(stored.count <= 1 && push.errors.contains("would replace"), "\(push.errors)")
      }
    }

    /// Many servers take two slashes in a path for one.
    @Test(arguments: ["/in//b.JPG", "/in///b.JPG", "/in/%62.JPG"])
    func redirectToAnotherSpellingOfAFileOfThePushLosesNone(_ place: String) async throws {
      let stored = Stored()
      let peer = peerThatRedirectsOne(stored, to: place)
      defer { peer.stop() }
      let push = try await push(to: peer, ["--jobs", "1"])
      #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
      #expect(stored.count <= 1 && push.errors.contains("would replace"), "\(push.errors)")
    }

    @Test func redirectedFileGetsAnotherName() async throws {
      let stored = Stored()
      let peer = peerThatRedirectsOne(stored)
      defer { peer.stop() }
      let push = try await push(to: peer, ["--on-conflict", "rename"])
      #expect(push.end == .exited(0) && stored.count == 2, "\(push.output)\(push.errors)")
      // Either of the two may come first.
      let isRenamed = ["PUT /in/a-2.JPG", "PUT /in/b-2.JPG"].contains { peer.requests.contains($0) }
      #expect(isRenamed, "\(peer.requests)")
    }
  }
}

/// The requests to a server that have stored a file, in the order of arrival.
private final class Stored: Sendable {
  private let requests = Mutex<[HTTPPeer.Request]>([])
  var count: Int { requests.withLock { $0.count } }

  func put(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
    requests.withLock { $0.append(request) }
    return .init(201)
  }

  func get(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
    requests.withLock { all in all.last { $0.path == request.path }.map { .init(200, [:], $0.body) } ?? .init(404) }
  }
}
