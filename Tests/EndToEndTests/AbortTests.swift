import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Testing

extension EndToEnd {
  /// `abort` at servers that do not delete uploads.
  @Suite(.serialized) struct AbortTests {
    let scratch = try! Scratch()

    /// A tus server that has half of every upload, and responds to each DELETE with `status`.
    private func peer(_ extensions: String, deleting status: Int) -> HTTPPeer {
      HTTPPeer { request in
        switch request.method {
        case "OPTIONS": .init(204, ["Tus-Version": "1.0.0", "Tus-Extension": extensions])
        case "POST" where request.headers["X-HTTP-Method-Override"] != nil, "DELETE": .init(status)
        case "POST": .init(201, ["Location": "/up/1"])
        case "HEAD": .init(200, ["Upload-Offset": "0", "Upload-Length": "100000"])
        default: nil
        }
      }
    }

    private func interrupt(_ peer: HTTPPeer) async throws {
      let (end, push) = try await fullbore(
        "push", "--retries", "0", try scratch.file("a.mov", 100_000), "tus+\(peer.url)", in: scratch)
      #expect(end == .exited(1), "\(push.errors)")
    }

    @Test(arguments: [403, 405]) func anUploadThatTheServerDoesNotDeleteStaysKnown(_ status: Int) async throws {
      let peer = peer("creation,termination", deleting: status)
      defer { peer.stop() }
      try await interrupt(peer)
      let (refused, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(refused == .exited(1) && abort.errors.contains("--forget"), "\(abort.output)\(abort.errors)")
      #expect(abort.errors.contains("\(status)") && !abort.output.contains("deleted"), "\(abort.output)\(abort.errors)")
      #expect(try await fullbore("status", in: scratch).command.output.contains("a.mov"))
      let (end, forgotten) = try await fullbore("abort", "--all", "--forget", in: scratch)
      #expect(end == .exited(0) && forgotten.output.contains("until it expires"), "\(forgotten.output)")
      #expect(try await !fullbore("status", in: scratch).command.output.contains("a.mov"))
    }

    /// The server may have a separate file tree for each user, in which the uploads of another user are not found.
    @Test func uploadsOfAnotherUserAreLeftAlone() async throws {
      let peer = peer("creation,termination", deleting: 204)
      defer { peer.stop() }
      let (anna, bob) = (try scratch.netrc(of: "anna"), try scratch.netrc(of: "bob"))
      let (end, push) = try await fullbore(
        "push", "--retries", "0", "--netrc-file", anna, try scratch.file("a.mov", 100_000),
        "tus+\(peer.url)", in: scratch)
      #expect(end == .exited(1), "\(push.errors)")
      let before = peer.requests.count { !$0.hasPrefix("OPTIONS") }
      let (refused, abort) = try await fullbore("abort", "--all", "--netrc-file", bob, in: scratch)
      #expect(refused == .exited(1) && abort.errors.contains("another user"), "\(abort.output)\(abort.errors)")
      let (_, status) = try await fullbore("status", "--check", "--netrc-file", bob, in: scratch)
      #expect(status.output.contains("another user"), "\(status.output)\(status.errors)")
      #expect(try await fullbore("resume", "--netrc-file", bob, in: scratch).command.errors.contains("another user"))
      #expect(peer.requests.count { !$0.hasPrefix("OPTIONS") } == before, "\(peer.requests)")
      #expect(try await fullbore("abort", "--all", in: scratch).end == .exited(0))
      #expect(peer.requests.contains { $0.hasPrefix("DELETE") }, "\(peer.requests)")
    }

    /// The server has all bytes but does not return them, so `--verify` fails.
    @Test func anUploadThatIsWholeIsNotDeleted() async throws {
      let peer = HTTPPeer { request in
        switch (request.method, request.path) {
        case ("OPTIONS", _): .init(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"])
        case ("POST", _): .init(201, ["Location": "/up/1"])
        case ("PATCH", _): .init(204, ["Upload-Offset": "100000"])
        case ("HEAD", "/up/1"): .init(200, ["Upload-Offset": "100000", "Upload-Length": "100000"])
        case ("DELETE", _): .init(204)
        default: .init(404)
        }
      }
      defer { peer.stop() }
      let (end, push) = try await fullbore(
        "push", "--retries", "0", "--verify", try scratch.file("a.mov", 100_000), "tus+\(peer.url)", in: scratch)
      #expect(end == .exited(1), "\(push.output)\(push.errors)")
      #expect(try await fullbore("status", in: scratch).command.output.contains("a.mov"))
      let (aborted, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(aborted == .exited(0) && abort.output.contains("stay there"), "\(abort.output)\(abort.errors)")
      #expect(!peer.requests.contains { $0.hasPrefix("DELETE") }, "\(peer.requests)")
      #expect(try await !fullbore("status", in: scratch).command.output.contains("a.mov"))
    }

    @Test func abortSaysThatAServerWithoutDeletionKeepsTheUpload() async throws {
      let peer = peer("creation", deleting: 405)
      defer { peer.stop() }
      try await interrupt(peer)
      let (end, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(end == .exited(0), "\(abort.errors)")
      #expect(abort.output.contains("until it expires") && !abort.output.contains("deleted at"), "\(abort.output)")
      #expect(try await !fullbore("status", in: scratch).command.output.contains("a.mov"))
    }
  }
}

extension Scratch {
  /// A netrc file with a password of this user for every server on this machine.
  func netrc(of user: String) throws -> String {
    let path = path("netrc-\(user)")
    try "machine 127.0.0.1 login \(user) password one".write(toFile: path, atomically: true, encoding: .utf8)
    #expect(chmod(path, 0o600) == 0)
    return path
  }
}
