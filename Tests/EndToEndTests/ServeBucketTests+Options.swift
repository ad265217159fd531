import BlobTesting
import Foundation
import TestSupport
import Testing

// The options of `serve` with `--to`, at an S3 server of another project.
extension EndToEnd.ServeBucketTests {
  private func bucket() async throws -> PeerServer {
    let peer = try await PeerServer.moto(in: scratch)
    try await peer.put("/media", in: scratch)
    return peer
  }

  private func curl(_ arguments: String...) async throws -> Command {
    let command = try Command(try #require(Peer.curl.path, Peer.curl.reason), ["-sS"] + arguments, in: scratch)
    try await command.wait()
    return command
  }

  /// A name that is taken is kept, and replaced with `--overwrite`; an object with the same bytes is no conflict.
  @Test(.needs(.moto, .curl), arguments: ["put+", "tus+", "resumable+"], [5000, (9 << 20) + 1])
  func existingNamesFollowTheSameRules(by prefix: String, _ length: Int) async throws {
    let peer = try await bucket()
    defer { withExtendedLifetime(peer) {} }
    let server = try await serve(peer.url)
    let file = try scratch.file("gallery/a.bin", length)
    func push(_ options: String...) async throws -> (Command.End, Command) {
      // Another journal each time, so that only the server knows the file.
      let command = try Command(
        Tool.fullbore,
        ["push", scratch.path("gallery") + "/", "\(prefix)\(server.url)", "--journal", scratch.path(UUID().uuidString)]
          + options, in: scratch)
      return (try await command.wait(), command)
    }
    func expectThere(_ bytes: Data, _ when: String) async throws {
      let got = scratch.path("got")
      #expect(try await curl("-f", "-o", got, server.url + "a.bin").end == .exited(0))
      #expect(try Data(contentsOf: URL(fileURLWithPath: got)) == bytes, "\(when)")
    }
    let first = try Data(contentsOf: URL(fileURLWithPath: file))
    let stored = try await push()
    #expect(stored.0 == .exited(0), "\(stored.1.output)\(stored.1.errors)")
    let same = try await push()
    #expect(same.0 == .exited(0), "\(same.1.output)\(same.1.errors)")
    var second = first
    second[length / 2] ^= 1
    try second.write(to: URL(fileURLWithPath: file))
    let refused = try await push()
    #expect(refused.0 != .exited(0), "\(refused.1.output)\(refused.1.errors)")
    try await expectThere(first, "after the refusal")
    let replaced = try await push("--overwrite")
    #expect(replaced.0 == .exited(0), "\(replaced.1.output)\(replaced.1.errors)")
    try await expectThere(second, "after --overwrite")
  }

  @Test(.needs(.moto, .curl), arguments: [5000, (9 << 20) + 1])
  func theTimeOfAFileComesBack(_ length: Int) async throws {
    let peer = try await bucket()
    defer { withExtendedLifetime(peer) {} }
    let server = try await serve(peer.url)
    let file = try scratch.file("gallery/a.bin", length)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: file)
    let (end, push) = try await fullbore("push", scratch.path("gallery") + "/", server.url, in: scratch)
    #expect(end == .exited(0), "\(push.output)\(push.errors)")
    let head = try await curl("-I", server.url + "a.bin").output
    #expect(head.contains("Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"), "\(head)")
  }

  @Test(.needs(.moto, .curl)) func theLimitForAllFilesHoldsAfterARestart() async throws {
    let peer = try await bucket()
    defer { withExtendedLifetime(peer) {} }
    var server = try await serve(peer.url, "--max-total", "1M")
    #expect(try await curl("-f", "-T", scratch.file("a", 700_000), server.url).end == .exited(0))
    for _ in 0..<2 {
      let answer = try await curl("-w", "%{http_code}", "-T", scratch.file("b", 400_000), server.url)
      #expect(answer.output.hasSuffix("507"), "\(answer.output)")
      server.command.kill(SIGTERM)
      #expect(try await server.command.wait() == .exited(0))
      server = try await serve(peer.url, "--max-total", "1M")
    }
    #expect(try await curl("-f", "-T", scratch.file("c", 300_000), server.url).end == .exited(0))
  }

  /// The program gets what other programs for S3 take.
  @Test(.needs(.moto, .curl)) func programsGetTheURLInTheBucket() async throws {
    let program = try scratch.file("hook", 0)
    try "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \"\(scratch.path("calls"))\"\n".write(
      toFile: program, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let peer = try await bucket()
    defer { withExtendedLifetime(peer) {} }
    let server = try await serve(peer.url, "--on-upload", program)
    #expect(try await curl("-f", "-T", scratch.file("a b.jpg", 1000), server.url + "2026/a%20b.jpg").end == .exited(0))
    server.command.kill(SIGTERM)
    #expect(try await server.command.wait() == .exited(0))
    #expect(try String(contentsOfFile: scratch.path("calls"), encoding: .utf8) == "s3://media/in/2026/a b.jpg\n")
  }

  /// The page lists what is in the bucket, and gives it out with `--download`; with `--receive-only` neither.
  @Test(.needs(.moto, .curl), arguments: ["--download", "--receive-only"])
  func thePageIsThatOfTheBucket(_ option: String) async throws {
    let peer = try await bucket()
    defer { withExtendedLifetime(peer) {} }
    let server = try await serve(peer.url, "--share", option)
    let link = try #require(server.command.output.firstMatch(of: /http:[^"\s]+/)?.0)
    let code = try #require(URL(string: String(link))?.fragment)
    let place = "http://127.0.0.1:\(server.port)/"
    let token = "Authorization: Bearer \(code)"
    #expect(try await curl("-f", "-H", "Accept: text/html", place).output.contains("<html"))
    let sent = try await curl("-f", "-H", token, "-T", scratch.file("a.jpg", 1000), place)
    #expect(sent.end == .exited(0), "\(sent.errors)")
    let list = try await curl("-w", "%{http_code}", "-H", token, "-H", "Accept: application/json", place)
    let get = try await curl("-w", "%{http_code}", "-o", scratch.path("got"), "-H", token, place + "a.jpg")
    if option == "--download" {
      #expect(list.output.contains("\"name\":\"a.jpg\"") && list.output.hasSuffix("200"), "\(list.output)")
      #expect(get.output == "200")
    } else {
      #expect(!list.output.contains("a.jpg") && get.output == "403", "\(list.output) \(get.output)")
    }
  }
}
