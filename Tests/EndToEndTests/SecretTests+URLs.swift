import BlobTesting
import TestSupport
import BlobUpload
import Blobs
import Foundation
import Testing

// Secrets in URLs and in the environment.
extension EndToEnd.SecretTests {
  /// A presigned URL for one file. The server does not allow the client to check the file.
  @Test(arguments: ["", "/"]) func aSignatureInADestinationGoesWithTheOneFileItIsFor(_ slash: String) async throws {
    let file = try scratch.file("a.jpg", 1000)
    let peer = ScriptedPeer(
      Array(
        repeating: [
          ScriptedPeer.Step.readRequest, .send("HTTP/1.1 403 No\r\n" + Self.nothing), .readRequest,
          .send("HTTP/1.1 403 No\r\n" + Self.nothing), .readRequest,
          .send("HTTP/1.1 403 No\r\n" + Self.nothing), .readRequest,
          .send("HTTP/1.1 200 OK\r\n" + Self.stored), .readRequest, .send("HTTP/1.1 403 No\r\n" + Self.nothing),
        ], count: 2
      ).flatMap { $0 })
    let place = "http://127.0.0.1:\(peer.port)/in/film.mov\(slash)?sig=\(plants.key)"
    let push = try Command.fullbore("push", file, "put+" + place, in: scratch)
    if slash.isEmpty {
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      let puts = peer.seen.heads.filter { $0.hasPrefix("PUT ") }
      #expect(puts.count == 1 && puts[0].hasPrefix("PUT /in/film.mov?sig=\(plants.key) "), "\(peer.seen.heads)")
    } else {
      // It can never be sent: no note of it is left, for which a resume would fail.
      #expect(try await push.wait() == .exited(2), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("have URLs of their own") && !peer.seen.heads.contains { $0.hasPrefix("PUT") })
      let (end, _) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0))
    }
    try plants.expectNoTrace()
  }

  @Test func aPasswordInAURLIsRefusedAndNotRepeated() async throws {
    let file = try scratch.file("a.jpg", 1000)
    let secret = plants.password
    for arguments in [
      [file, "https://me:\(secret)@media.example/"], ["https://me:\(secret)@media.example/", file],
      ["--proxy", "http://me:\(secret)@proxy.example:1", file, "http://media.example/"],
      ["--proxy", "http://me:\(secret)@proxy.example:x", file, "http://media.example/"],
    ] {
      let command = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
      #expect(try await command.wait() == .exited(2))
    }
    try plants.expectNoTrace()
  }

  @Test func aPasswordInTheEnvironmentIsUsedAndNotRepeated() async throws {
    let proxy = ProxyPeer(to: 1, .wants(user: "me", password: plants.proxyPassword))
    let file = try scratch.file("a.jpg", 1000)
    for address in [
      "http://me:\(plants.proxyPassword)@127.0.0.1:\(proxy.port)", "http://me:\(plants.proxyPassword)@p:x",
    ] {
      let push = try Command.fullbore(
        "push", "--retries", "0", file, "https://media.example/", in: scratch,
        environment: ["https_proxy": address])
      #expect(try await push.wait() == .exited(3))
    }
    #expect(proxy.seen.heads.contains { $0.contains(base64("me:" + plants.proxyPassword)) })
    try plants.expectNoTrace()
  }
}
