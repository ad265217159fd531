import Foundation
import Testing

extension EndToEnd {
  /// What a push draws on a real terminal, which tmux emulates.
  @Suite(.serialized) struct TerminalTests {
    let scratch = try! Scratch()

    private func gallery() throws -> String {
      for name in ["film-one", "film-two"] { try scratch.file("gallery/\(name).mov", 12 << 20) }
      for number in 0..<5 { try scratch.file("gallery/\(number).jpg", 100_000) }
      return scratch.path("gallery/")
    }

    @Test(.needs(.tmux), arguments: [false, true]) func barsFollowTheSizeOfTheTerminal(_ noColor: Bool) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let terminal = try await EmulatedTerminal(
        ["push", try gallery(), server.url, "--bwlimit", "3M"], width: 80,
        environment: noColor ? ["NO_COLOR": "1"] : [:], in: scratch)
      func isBar(_ line: String) -> Bool { line.contains("film-") && line.contains("━") }
      func isTotal(_ line: String) -> Bool { line.contains(" %, ") && line.contains(" left") }
      let wide = try await terminal.lines("bars of both films") {
        $0.count(where: isBar) == 2 && $0.contains(where: isTotal)
      }
      #expect(wide.count == 3 && wide.allSatisfy { $0.count < 80 }, "\(wide)")
      #expect(wide[0].contains(" % of  12.0 MiB"), "\(wide)")
      let colored = try await terminal.lines(withColors: true).joined()
      #expect(colored.contains("\u{1B}[32m") != noColor, "\(colored)")
      // What was drawn in the old width leaves nothing behind.
      for width in [41, 100, 60] {
        try await terminal.resize(width)
        try await Task.sleep(for: .milliseconds(400))
        let lines = try await terminal.lines("one drawing in \(width) columns") { $0.count(where: isTotal) >= 1 }
        #expect(lines.count(where: isBar) == 2 && lines.count == 3, "\(width): \(lines)")
        #expect(lines.allSatisfy { $0.count < width }, "\(width): \(lines)")
      }
      let ended = try await terminal.lines("the end") { $0.contains("ended 0") }
      #expect(ended.count == 2 && ended[0].hasPrefix("7 files sent, 24."), "\(ended)")
      try await terminal.end()
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.needs(.tmux)) func aComparisonShowsHowFarItIs() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let gallery = try gallery()
      #expect(try await fullbore("push", gallery, server.url, in: scratch).end == .exited(0))
      try scratch.file("gallery/missing.jpg", 10)
      let terminal = try await EmulatedTerminal(
        ["check", gallery, server.url, "--download", "--bwlimit", "4M"], width: 80, in: scratch)
      let lines = try await terminal.lines("the totals of the comparison") {
        $0.contains { $0.contains(" of 8 files, ") && $0.contains(" %, ") && $0.contains(" left") }
      }
      #expect(lines.count { $0.contains(" files, ") } == 1, "\(lines)")
      let ended = try await terminal.lines("the end") { $0.contains("ended 1") }
      #expect(!ended.contains { $0.contains(" left") } && ended.contains { $0.hasPrefix("Do not delete") }, "\(ended)")
      #expect(ended.contains("fullbore: missing.jpg: missing at the destination"), "\(ended)")
      try await terminal.end()
    }

    /// What the program of `--on-done` prints stays above the board, and nothing is drawn into it.
    @Test(.needs(.tmux)) func aProgramPrintsAboveTheBoard() async throws {
      let server = try await ServeProcess.start(in: scratch)
      for number in 0..<5 { try scratch.file("gallery/\(number).jpg", 10_000) }
      let program = scratch.path("done.sh")
      try "#!/bin/sh\necho \"begin ${1##*/}\"\nsleep 0.3\necho \"end ${1##*/}\" >&2\n"
        .write(toFile: program, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
      let terminal = try await EmulatedTerminal(
        ["watch", "--on-done", program, scratch.path("gallery/"), server.url], width: 100, in: scratch)
      let lines = try await terminal.lines("the last program has ended") { lines in
        lines.count { $0.hasPrefix("end ") } == 5
      }
      let printed = lines.filter { $0.contains(".jpg") }
      #expect(printed.allSatisfy { $0.hasPrefix("begin ") || $0.hasPrefix("end ") }, "\(lines)")
      #expect(printed.allSatisfy { $0.hasSuffix(".jpg") } && printed.count == 10, "\(lines)")
      #expect(lines.count { $0.contains(" %, ") || $0.contains("5 files") } <= 1, "\(lines)")
      try await terminal.end()
    }

    @Test(.needs(.tmux)) func anOutageCountsDownOnOneLine() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let terminal = try await EmulatedTerminal(
        ["push", try gallery(), "tus+" + server.url, "--bwlimit", "4M"], width: 120, in: scratch)
      try await until("some has arrived") { server.folder.received() > 4 << 20 ? true : nil }
      server.command.kill(SIGKILL)
      try await server.command.wait()
      func isAway(_ line: String) -> Bool {
        line.contains("127.0.0.1:\(server.port) does not answer since ") && line.contains("trying again")
      }
      var seen: Set<String> = []
      for _ in 0..<600 where seen.count < 4 {
        let lines = try await terminal.lines()
        let away = lines.filter(isAway)
        #expect(away.count <= 1, "\(lines)")
        seen.formUnion(away.filter { $0.contains("trying again in ") })
        try await Task.sleep(for: .milliseconds(100))
      }
      #expect(seen.count >= 4, "the time until the next attempt does not count down: \(seen)")
      let again = try await server.startAgain(in: scratch)
      let ended = try await terminal.lines("the end") { $0.contains("ended 0") }
      #expect(ended.count == 4 && ended[0].contains(" does not answer since "), "\(ended)")
      #expect(ended[1].contains(" answers again, after "), "\(ended)")
      try await terminal.end()
      Folder(scratch.path("gallery")).expectSame(as: again.folder)
    }
  }
}
