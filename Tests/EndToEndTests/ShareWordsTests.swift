import Foundation
import Testing

extension EndToEnd {
  /// What `serve --share` and `push` tell a person.
  @Suite(.serialized) struct ShareWordsTests {
    let scratch = try! Scratch()

    private func serve(_ options: String..., listen: String = "127.0.0.1:0") async throws -> (Command, URL) {
      let server = try Command(
        Tool.fullbore, ["serve", try scratch.folder("received"), "--share", "--listen", listen] + options, in: scratch)
      let line = try await until("the server prints its link") { server.output.split(separator: "\n").first }
      return (server, try #require(URL(string: String(line))))
    }

    private func token(_ text: String) throws -> String {
      let path = scratch.path("code")
      try Data("\(text)\n".utf8).write(to: URL(filePath: path))
      return path
    }

    @Test func theTerminalSaysWhenItEnds() async throws {
      let (server, _) = try await serve("--for", "1h", "--once")
      try await until("it says what it does") { server.errors.contains("Receiving into") ? true : nil }
      #expect(server.errors.contains(/It ends at \d\d:\d\d, or 30 s after/), "\(server.errors)")
      server.kill(SIGTERM)
      _ = try await server.wait()
      let (plain, _) = try await serve()
      try await until("it says what it does") { plain.errors.contains("Ctrl-C ends it.") ? true : nil }
    }

    @Test func aShortCodeIsWarnedOf() async throws {
      for (code, isShort) in [("abc", true), ("k7mq-4w9x-p3tz", false)] {
        let (server, _) = try await serve("--token-file", try token(code), "--for", "1s")
        #expect(try await server.wait() == .exited(0))
        #expect(server.errors.contains("by trying") == isShort, "\(server.errors)")
      }
    }

    @Test func aPushWithTheLinkSaysWhatToDo() async throws {
      let (_, link) = try await serve()
      let file = try scratch.file("a.jpg", 100)
      let (end, push) = try await fullbore("push", file, link.absoluteString, in: scratch)
      #expect(end == .exited(2) && push.errors.contains("serve --share"), "\(push.errors)")
      #expect(push.errors.contains("--token-file") && !push.errors.contains("%23"), "\(push.errors)")
      #expect(!push.errors.contains(try #require(link.fragment)))
    }

    @Test func aTakenPortSaysHowToChooseAnother() async throws {
      let (server, link) = try await serve()
      let port = try #require(link.port)
      let (end, second) = try await fullbore(
        "serve", try scratch.folder("other"), "--listen", "127.0.0.1:\(port)", in: scratch)
      #expect(end == .exited(1) && second.errors.contains("--listen"), "\(second.errors)")
      server.kill(SIGTERM)
    }

    /// Whoever reads the file through the server would read what others do.
    @Test func aLinkIntoTheFolderIsNoPlaceForTheLog() async throws {
      let folder = try scratch.folder("received")
      try scratch.file("received/inside.log", 0)
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("link.log"), withDestinationPath: "\(folder)/inside.log")
      let server = try Command(
        Tool.fullbore, ["serve", folder, "--listen", "127.0.0.1:0", "--log", scratch.path("link.log")], in: scratch)
      let end = try await until("it ends or listens") { server.end ?? (server.output.isEmpty ? nil : .exited(0)) }
      #expect(end == .exited(2) && server.errors.contains("in the served folder"), "\(server.errors)")
    }

    @Test func theEndNamesDownloadsThatItCuts() async throws {
      let (server, link) = try await serve("--download", "--for", "4s")
      try scratch.file("received/film.mov", 40 << 20)
      let curl = try #require(Tool.find("curl"), "curl is not installed: scripts/bootstrap test")
      let place = "http://127.0.0.1:\(try #require(link.port))"
      let gets = try ["/film.mov", "/?archive=tar"].map { path in
        try Command(
          curl,
          [
            "-s", "--limit-rate", "1M", "-o", "/dev/null", "-H",
            "Authorization: Bearer \(try #require(link.fragment))", place + path,
          ], in: scratch)
      }
      #expect(try await server.wait(.seconds(30)) == .exited(0))
      for get in gets { _ = try await get.wait() }
      #expect(server.errors.contains("2 downloads were cut:\n  /\n  film.mov\n"), "\(server.errors)")
    }
  }
}
