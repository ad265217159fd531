import Foundation
import Testing

extension EndToEnd {
  /// The server is killed at random bytes while it joins the parts of a tus upload.
  @Suite(.serialized) struct JoinKillTests {
    private static let part = 12 << 20
    private static let count = 8

    @Test(.needs(.curl)) func aKillWhilePartsAreJoinedLosesNothing() async throws {
      let curl = try #require(Peer.curl.path, Peer.curl.reason)
      let rounds = max(5, Tool.number("FULLBORE_KILLS", default: 50) / 10)
      let seed = Tool.number("FULLBORE_SEED", default: Int.random(in: 0...999_999))
      print("FULLBORE_SEED=\(seed)")
      var random = Seeded(UInt64(seed))
      let scratch = try Scratch()
      var server = try await ServeProcess.start(in: scratch)
      var killedInTheMiddle = 0
      for round in 0..<rounds {
        let (parts, whole) = try await send(round, server, curl, in: scratch)
        let final = try join(parts, "joined-\(round)", server, curl, in: scratch)
        let target = Int.random(in: 0...(Self.part * Self.count), using: &random)
        try await until("\(target) bytes are joined") { [server] in
          let joined = Self.joined(server)
          if joined > 0, joined < Self.part * Self.count { killedInTheMiddle += joined >= target ? 1 : 0 }
          return joined >= target || final.end != nil ? true : nil
        }
        server.command.kill(SIGKILL)
        try await server.command.wait()
        _ = try await final.wait()
        #expect(
          server.folder.files().keys.filter { $0 == "joined-\(round)" }.allSatisfy { _ in
            FileManager.default.contentsEqual(atPath: whole, andPath: "\(server.folder.path)/joined-\(round)")
          }, "what is published is not whole; seed \(seed), round \(round)")
        server = try await server.startAgain(in: scratch)
        let again = try join(parts, "joined-\(round)", server, curl, in: scratch)
        #expect(try await again.wait() == .exited(0), "seed \(seed), round \(round): \(again.output)\(again.errors)")
        #expect(
          FileManager.default.contentsEqual(atPath: whole, andPath: "\(server.folder.path)/joined-\(round)"),
          "seed \(seed), round \(round)")
        try FileManager.default.removeItem(atPath: "\(server.folder.path)/joined-\(round)")
      }
      print("killed \(killedInTheMiddle) of \(rounds) times while bytes were copied")
      #expect(server.folder.unfinished() == 0)
    }

    /// The size of the final upload while it is joined; 0 if there is none.
    private static func joined(_ server: ServeProcess) -> Int {
      let aside = server.folder.path + "/.fullbore"
      let names = Set((try? FileManager.default.contentsOfDirectory(atPath: aside)) ?? [])
      return names.filter { $0.hasSuffix(".join") && names.contains("\($0.dropLast(5)).info") }.compactMap {
        try? FileManager.default.attributesOfItem(atPath: "\(aside)/\($0.dropLast(5)).data")[.size] as? Int
      }.max() ?? 0
    }

    /// Sends complete parts. Returns their URLs, and a file with all of their bytes.
    private func send(
      _ round: Int, _ server: ServeProcess, _ curl: String, in scratch: Scratch
    ) async throws -> (parts: [String], whole: String) {
      var parts: [String] = []
      let whole = scratch.path("whole")
      try Data().write(to: URL(fileURLWithPath: whole))
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: whole))
      for number in 0..<Self.count {
        let path = try scratch.file("part", Self.part + number, seed: UInt64(round * 100 + number))
        try file.write(contentsOf: Data(contentsOf: URL(fileURLWithPath: path)))
        let create = try Command(
          curl,
          [
            "-sSf", "-D", "-", "-o", "/dev/null", "-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H",
            "Upload-Concat: partial", "-H", "Upload-Length: \(Self.part + number)", "-H",
            "Content-Type: application/offset+octet-stream", "-H", "Expect:", "--data-binary", "@\(path)", server.url,
          ], in: scratch)
        #expect(try await create.wait() == .exited(0), "\(create.errors)")
        let line = create.output.split(whereSeparator: \.isNewline).first { $0.hasPrefix("Location: ") }
        parts.append(String(try #require(line).dropFirst(10)))
      }
      try file.close()
      return (parts, whole)
    }

    private func join(
      _ parts: [String], _ name: String, _ server: ServeProcess, _ curl: String, in scratch: Scratch
    ) throws -> Command {
      let metadata = "filename " + Data(name.utf8).base64EncodedString()
      return try Command(
        curl,
        [
          "-sSf", "-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H",
          "Upload-Concat: final;\(parts.joined(separator: " "))",
          "-H", "Upload-Metadata: \(metadata)", server.url,
        ], in: scratch)
    }
  }
}
