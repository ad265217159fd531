import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore history`: what went where and when, without a question to a server.
  @Suite(.serialized) struct HistoryTests {
    let scratch = try! Scratch()

    private func history(_ words: String...) async throws -> Command {
      let command = try Command(Tool.fullbore, ["history"] + words, in: scratch)
      try await command.wait()
      return command
    }

    @Test func historyListsSentFilesWithTimeAndPlace() async throws {
      #expect(try await history().output.contains("nothing was pushed yet"))
      let server = try await ServeProcess.start(in: scratch)
      for name in ["a.JPG", "b.MOV"] {
        let file = try scratch.file("card/\(name)", 2_000)
        #expect(
          try await fullbore("push", file, "\(server.url)\(name == "a.JPG" ? "one/" : "two/")", in: scratch).end
            == .exited(0))
      }
      server.command.kill(SIGKILL)
      let all = try await history()
      let lines = all.output.split(separator: "\n")
      #expect(
        all.end == .exited(0) && lines.count == 3 && lines[2] == "2 files, 3.91 KiB.", "\(all.output)\(all.errors)")
      #expect(lines[0].contains("\(scratch.path("card/a.JPG"))  ->  \(server.url)one/a.JPG"), "\(all.output)")
      let format = DateFormatter()
      format.dateFormat = "yyyy-MM-dd"
      let (today, tomorrow) = (format.string(from: Date()), format.string(from: Date(timeIntervalSinceNow: 86_400)))
      #expect(lines[0].hasPrefix(today), "\(all.output)")
      for (words, files) in [
        (["--since", today], 2), (["--since", "1h"], 2), (["--since", tomorrow], 0), (["*.MOV"], 1),
        (["--before", tomorrow], 2), (["--before", today], 0),
        (["--to", "\(server.url)two/"], 1), (["a.JPG", "--to", "\(server.url)two/"], 0), (["/*/card/*"], 2),
      ] {
        let some = try Command(Tool.fullbore, ["history", "--json"] + words, in: scratch)
        #expect(try await some.wait() == .exited(0), "\(some.errors)")
        #expect(some.output.split(separator: "\n").count == files, "\(words) \(some.output)")
      }
      let json = try await history("--json", "a.JPG")
      #expect(json.output.contains("{\"event\":\"sent\",\"time\":") && json.output.contains("\"length\":2000"))
      for words in [
        ["--forget"], ["--since", "2026-02-30"], ["--since", "yesterday"], ["--to", "http://nowhere.example/"], ["["],
      ] {
        let bad = try Command(Tool.fullbore, ["history"] + words, in: scratch)
        #expect(try await bad.wait() == .exited(2), "\(words) \(bad.output)\(bad.errors)")
      }
    }

    /// The disk of the server was lost. Without that, `push --check` would find it out.
    @Test func aForgottenFileIsSentAgain() async throws {
      let server = try await ServeProcess.start(in: scratch)
      for name in ["a.JPG", "b.JPG"] { try scratch.file("card/\(name)", 2_000) }
      func push() async throws -> String {
        let push = try await fullbore("push", scratch.path("card/"), server.url, in: scratch)
        #expect(push.end == .exited(0), "\(push.command.errors)")
        return push.command.output
      }
      #expect(try await push().contains("2 files sent"))
      for name in ["a.JPG", "b.JPG"] { try FileManager.default.removeItem(atPath: server.folder.path + "/\(name)") }
      #expect(try await push().contains("2 done before"))
      let forgotten = try await history("--forget", "a.JPG", "--to", server.url)
      #expect(
        forgotten.end == .exited(0) && forgotten.output.hasSuffix("\n1 file, 1.95 KiB forgotten.\n"),
        "\(forgotten.output)\(forgotten.errors)")
      #expect(try await history("--json").output.split(separator: "\n").count == 1)
      #expect(try await push().contains("1 file sent"))
      #expect(server.folder.received() == 2_000)
    }
  }
}
