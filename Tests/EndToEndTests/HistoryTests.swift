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

    @Test func whatWasSentIsListedWithItsTimeAndPlace() async throws {
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
        (["--to", "\(server.url)two/"], 1), (["a.JPG", "--to", "\(server.url)two/"], 0), (["/*/card/*"], 2),
      ] {
        let some = try Command(Tool.fullbore, ["history", "--json"] + words, in: scratch)
        #expect(try await some.wait() == .exited(0), "\(some.errors)")
        #expect(some.output.split(separator: "\n").count == files, "\(words) \(some.output)")
      }
      let json = try await history("--json", "a.JPG")
      #expect(json.output.contains("{\"event\":\"sent\",\"time\":") && json.output.contains("\"length\":2000"))
      for words in [["--since", "2026-02-30"], ["--since", "yesterday"], ["--to", "http://nowhere.example/"], ["["]] {
        let bad = try Command(Tool.fullbore, ["history"] + words, in: scratch)
        #expect(try await bad.wait() == .exited(2), "\(words) \(bad.output)\(bad.errors)")
      }
    }
  }
}
