import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// The interface for users and scripts: exit statuses, `--json`, `status`, `resume`, `checksum`.
  @Suite(.serialized) struct CommandLineTests {
    let scratch = try! Scratch()

    @Test(arguments: [
      [], ["pusch"], ["push"], ["push", "gallery"], ["push", "--no-such-option", "gallery", "http://127.0.0.1:9/"],
      ["push", "gallery", "ftp://127.0.0.1/"], ["push", "gallery", "http://"],
      ["serve"], ["serve", "/", "--listen", "x:y"], ["serve", "/", "--max-size", "0"],
      ["serve", "/", "--expire", "0"], ["serve", "/", "--expire", "999ms"],
      ["serve", "/", "--max-total", "0"],
      ["serve", "/", "--allow-origin", "https://host/"], ["serve", "/", "--allow-origin", "host"],
      ["serve", "/", "--tls-key", "key.pem"], ["push", "--checksum", "crc7", "gallery", "http://127.0.0.1:9/"],
    ])
    func wrongUsageExitsWith2(_ arguments: [String]) async throws {
      let command = try Command(Tool.fullbore, arguments, in: scratch)
      #expect(try await command.wait() == .exited(2))
      #expect(!command.errors.isEmpty)
    }

    @Test func argumentsAreKnownBesideALibraryThatAddsAVariable() async throws {
      let environment = try Shim.environment(.largerEnvironment, in: scratch)
      for arguments in [["--version"], ["push", "", "\u{e9} b", "http://"]] {
        let command = try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
        let usual = try Command(Tool.fullbore, arguments, in: scratch)
        #expect(try await command.wait() == usual.wait())
        #expect(command.output == usual.output && command.errors == usual.errors, "\(command.errors)")
      }
    }

    @Test func aFolderIsServedByOneServer() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let second = try Command.fullbore("serve", server.folder.path, "--listen", "127.0.0.1:0", in: scratch)
      #expect(try await second.wait() == .exited(1))
      #expect(second.errors.contains("already served"), "\(second.errors)")
      #expect(second.output.isEmpty)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      _ = try await server.startAgain(in: scratch)
    }

    @Test func sourceThatIsNotThereIsNamed() async throws {
      try scratch.file("here.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", scratch.path("here.jpg"), scratch.path("gone.jpg"), server.url, in: scratch)
      #expect(end == .exited(1) || end == .exited(2))
      #expect(push.errors.contains("gone.jpg"), "\(push.errors)")
    }

    @Test func unreachableServerExitsWith3() async throws {
      try scratch.file("here.jpg", 1000)
      let (end, push) = try await fullbore(
        "push", "--retries", "0", scratch.path("here.jpg"), "http://127.0.0.1:9/", in: scratch)
      #expect(end == .exited(3))
      #expect(push.errors.contains("127.0.0.1:9"), "\(push.errors)")
    }

    @Test func refusedCredentialExitsWith3AndIsNotPrinted() async throws {
      try scratch.file("here.jpg", 1000)
      try "right-token\n".write(toFile: scratch.path("right"), atomically: true, encoding: .utf8)
      try "wrong-token\n".write(toFile: scratch.path("wrong"), atomically: true, encoding: .utf8)
      let server = try await ServeProcess.start(in: scratch, "--token-file", scratch.path("right"))
      let (refused, push) = try await fullbore(
        "push", "--token-file", scratch.path("wrong"), scratch.path("here.jpg"), server.url, in: scratch)
      #expect(refused == .exited(3))
      #expect(!(push.output + push.errors).contains("wrong-token"))
      let (taken, _) = try await fullbore(
        "push", "--token-file", scratch.path("right"), scratch.path("here.jpg"), server.url, in: scratch)
      #expect(taken == .exited(0))
      let journal = try Data(contentsOf: URL(fileURLWithPath: scratch.path("journal.sqlite")))
      #expect(journal.range(of: Data("right-token".utf8)) == nil)
    }

    @Test func interruptedPushExitsWith130AndResumes() async throws {
      let file = try scratch.file("gallery/video.mov", 24 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "8M", file, "tus+" + server.url, in: scratch)
      let before = try await until("a part has arrived") {
        let bytes = server.folder.unfinished()
        return bytes > 4 << 20 ? bytes : nil
      }
      push.kill(SIGINT)
      #expect(try await push.wait(.seconds(10)) == .exited(130))
      #expect(server.folder.files().isEmpty)

      let (_, status) = try await fullbore("status", in: scratch)
      #expect(status.output.contains("video.mov"), "\(status.output)")
      let (end, resume) = try await fullbore("resume", "--json", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      let summary = try #require(try events(in: resume).last)
      #expect(try #require(summary["bytes_sent"] as? Int) <= (24 << 20) - before)
    }

    @Test func everyLineOfJSONIsAnObjectWithAnEvent() async throws {
      for number in 0..<20 { try scratch.file("gallery/IMG_\(number).jpg", 100_000 + number) }
      try scratch.file("gallery/quote\"and\nline.jpg", 1)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--json", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(0))
      let events = try events(in: push)
      let kinds = events.map { $0["event"] as? String }
      #expect(kinds.filter { $0 == "done" }.count == 21)
      #expect(kinds.last == "summary")
      #expect(events.last?["files_sent"] as? Int == 21)
      #expect(kinds.first == "destination")
      let schema = try EventSchema()
      for event in events { #expect(schema.fault(in: event) == nil, "\(event)") }
    }

    @Test func checksumPrintsTheSameAsSha256sum() async throws {
      let files = try [0, 1, 1 << 20, 3_000_001].map { try scratch.file("sum-\($0) .bin", $0) }
      let ours = try Command(Tool.fullbore, ["checksum"] + files, in: scratch)
      let theirs = try Command("sha256sum", files, in: scratch)
      #expect(try await ours.wait() == .exited(0))
      #expect(try await theirs.wait() == .exited(0))
      #expect(ours.output == theirs.output)
    }

    /// A file of up to 4 MiB is sent in one request, and leaves nothing to resume.
    @Test(arguments: [500_000, 2_000_000, 4_400_000]) func demoVerifiesAFolderAndLeavesNothing(_ size: Int) async throws
    {
      for number in 0..<5 { try scratch.file("gallery/IMG_\(number).jpg", size / (number + 1)) }
      let before = Folder(scratch.path("gallery")).files()
      try scratch.folder("temporary")
      let program = Tool.checkout.appendingPathComponent("Examples/Demo/demo.py").path
      let demo = try Command(
        "python3", [program, "--fullbore", Tool.fullbore, scratch.path("gallery")], in: scratch,
        environment: ["TMPDIR": scratch.path("temporary")])
      #expect(try await demo.wait(.seconds(120)) == .exited(0), "\(demo.output)\(demo.errors)")
      #expect(demo.output.contains("It sent nothing") == (size <= 4 << 20), "\(demo.output)")
      #expect(demo.output.contains("It went on at byte") == (size > 4 << 20), "\(demo.output)")
      #expect(Folder(scratch.path("gallery")).files() == before)
      #expect(Folder(scratch.path("temporary")).received() == 0)
    }

    private func events(in command: Command) throws -> [[String: Any]] {
      try command.output.split(separator: "\n").map { line in
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
      }
    }
  }
}
