import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// Destinations with names, through the program: adding, using and removing them, and where their credentials go.
  @Suite(.serialized) struct PlacesTests {
    let scratch = try! Scratch()
    let secret = "planted-place-token"

    var configuration: String { scratch.path("config/fullbore/config.toml") }

    func run(
      _ words: String..., path: String? = nil, environment more: [String: String] = [:]
    ) async throws -> Command {
      var environment = more.merging(["XDG_CONFIG_HOME": scratch.path("config")]) { $1 }
      if let path { environment["PATH"] = path }
      let command = try Command(Tool.fullbore, words, in: scratch, environment: environment)
      try await command.wait()
      return command
    }

    func writeConfiguration(_ text: String) throws {
      try FileManager.default.createDirectory(
        atPath: scratch.path("config/fullbore"), withIntermediateDirectories: true)
      try text.write(toFile: configuration, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: configuration)
    }

    func tokenFile(_ text: String? = nil, _ name: String = "token") throws -> String {
      let path = scratch.path(name)
      try (text ?? secret).write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }

    @Test func aPlaceThatSealsIsListedSo() async throws {
      // A public key, made for this test.
      let sealing = "seal = \"age1tmjkznfjru0nvfnuhxjkn35eu3q08jjeeapx53rvaaxteu363frq98nr6m\""
      try writeConfiguration("[places.safe]\nurl = \"http://127.0.0.1:9/safe/\"\n\(sealing)\n")
      let list = try await run("places")
      #expect(list.output.contains("safe:  http://127.0.0.1:9/safe/  (seals files)"), "\(list.output)")
    }

    @Test func aPlaceIsAddedUsedListedAndRemoved() async throws {
      let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
      let comment = "# My places.\n\n[places.old] # since 2019\nurl = \"http://127.0.0.1:9/\"\n# the end\n"
      try writeConfiguration(comment)
      let add = try await run("places", "add", "nas", server.url, "--token-file", scratch.path("token"), "--verify")
      #expect(add.end == .exited(0), "\(add.output)\(add.errors)")
      #expect(add.output.contains("speaks tus"), "\(add.output)")
      let written = try String(contentsOfFile: configuration, encoding: .utf8)
      #expect(
        written.hasPrefix(comment) && written.contains("verify = true") && !written.contains(secret), "\(written)")
      let mode = try FileManager.default.attributesOfItem(atPath: configuration)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let list = try await run("places")
      #expect(list.output.contains("nas:  \(server.url)  (token-file \(scratch.path("token")))"), "\(list.output)")
      let json = try await run("places", "--json")
      #expect(json.output.contains("{\"event\":\"place\",\"name\":\"nas\",\"url\":\"\(server.url)\""), "\(json.output)")

      try scratch.file("card/a b#1.JPG", 20_000, seed: 1)
      let push = try await run("push", scratch.path("card/"), "nas:2026/Ferien #1/")
      #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["2026/Ferien #1/a b#1.JPG"])
      let again = try await run(
        "push", scratch.path("card/"), "\(server.url)2026/Ferien%20%231/", "--token-file", scratch.path("token"))
      #expect(again.output.contains("1 done before"), "\(again.output)\(again.errors)")
      let status = try await run("status", "nas:2026")
      #expect(status.end == .exited(0) && status.output.contains("done: 1 file"), "\(status.output)\(status.errors)")

      let twice = try await run("places", "add", "nas", server.url)
      #expect(twice.end == .exited(2) && twice.errors.contains("there is a place 'nas' already"), "\(twice.errors)")
      let remove = try await run("places", "remove", "nas")
      #expect(remove.end == .exited(0), "\(remove.errors)")
      #expect(try String(contentsOfFile: configuration, encoding: .utf8) == comment)
      let gone = try await run("push", scratch.path("card/"), "nas:")
      #expect(gone.end == .exited(2) && gone.errors.contains("there is no place called 'nas'"), "\(gone.errors)")
    }

    @Test func aPlaceWithAWrongTokenIsNotWritten() async throws {
      let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
      let wrong = try tokenFile("wrong", "wrong")
      let add = try await run("places", "add", "nas", server.url, "--token-file", wrong)
      #expect(add.end == .exited(3) && add.errors.contains("401") && add.errors.contains("--untested"), "\(add.errors)")
      #expect(!FileManager.default.fileExists(atPath: configuration))
      #expect(try await run("places", "add", "nas", server.url, "--token-file", wrong, "--untested").end == .exited(0))
      let gone = try await run("places", "add", "gone", "http://127.0.0.1:9/")
      #expect(gone.end == .exited(3) && gone.errors.contains("127.0.0.1:9"), "\(gone.errors)")
      for words in [
        ["places", "add", "nas2", "nas:8080"], ["places", "add", "a b", server.url], ["places", "ad"],
        ["places", "remove", "nsa"],
      ] {
        let bad = try Command(
          Tool.fullbore, words, in: scratch, environment: ["XDG_CONFIG_HOME": scratch.path("config")])
        #expect(try await bad.wait() == .exited(2), "\(words) \(bad.output)\(bad.errors)")
        #expect(!bad.errors.contains(":2:"), "\(bad.errors)")
      }
    }

    @Test func aMistakeInTheFileIsNamedBeforeAnythingIsSent() async throws {
      try scratch.file("a.JPG", 10)
      try writeConfiguration("[places.nas]\nurl = \"http://127.0.0.1:9/\"\njbos = 3\n")
      for words in [
        ["push", scratch.path("a.JPG"), "nas:"], ["places"], ["resume", "nas:"], ["watch", scratch.path, "nas:"],
      ] {
        let command = try Command(
          Tool.fullbore, words, in: scratch, environment: ["XDG_CONFIG_HOME": scratch.path("config")])
        #expect(try await command.wait() == .exited(2), "\(words)")
        #expect(
          command.errors.contains("\(configuration):3:1: there is no setting 'jbos'. Did you mean 'jobs'?"),
          "\(command.errors)")
      }
    }

    /// An upload to the place that was interrupted.
    func interrupt(_ peer: ScriptedPeer, _ name: String, _ destination: String) async throws {
      let push = try Command(
        Tool.fullbore, ["push", "--overwrite", scratch.file(name, 8 << 20), destination], in: scratch,
        environment: ["XDG_CONFIG_HOME": scratch.path("config")])
      await peer.wait { $0.steps.last == 4 }
      try await untilEveryFileIsKnown(in: scratch)
      push.kill(SIGKILL)
      try await push.wait()
    }

    func peer() -> ScriptedPeer {
      ScriptedPeer(ResumeTests.interrupted, ResumeTests.nothingThere + [.readRequest, .send(ResumeTests.made)])
    }

    @Test func resumeTakesTheCredentialsOfThePlaceAndNoOtherServerGetsThem() async throws {
      let (mine, other) = (peer(), peer())
      let place =
        "[places.nas]\nurl = \"put+http://127.0.0.1:\(mine.port)/in/\"\ntoken-command = 'cat \(try tokenFile())'\n"
      try writeConfiguration(place)
      try await interrupt(mine, "a.mov", "nas:2026/")
      try await interrupt(other, "b.mov", "put+http://127.0.0.1:\(other.port)/in/")
      #expect(mine.seen.heads.last?.contains("Bearer \(secret)") == true)
      let journal = try Data(contentsOf: URL(fileURLWithPath: scratch.path("journal.sqlite")))
      #expect(journal.range(of: Data(secret.utf8)) == nil && journal.range(of: Data("cat /".utf8)) == nil)

      try writeConfiguration(place.replacingOccurrences(of: "/in/", with: "/elsewhere/"))
      let lost = try await run("resume", "http://127.0.0.1:\(mine.port)/", "--retries", "0")
      #expect(lost.end == .exited(3) && lost.errors.contains("those of the place 'nas'"), "\(lost.errors)")
      #expect(mine.seen.heads.count == 2)

      try writeConfiguration(place)
      let resume = try await run("resume")
      #expect(resume.end == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(mine.seen.heads.last?.contains("Bearer \(secret)") == true)
      #expect(!other.seen.heads.joined().contains(secret))
    }

    @Test func resumeUsesThePlaceOfThePushIfTwoHaveItsURL() async throws {
      let server = peer()
      var text = ""
      for name in ["anna", "bob"] {
        text += "[places.\(name)]\nurl = \"put+http://127.0.0.1:\(server.port)/in/\"\n"
        text += "token-file = \"\(try tokenFile("token-of-\(name)", name))\"\n"
        // An earlier version of the program does not know this setting.
        if !Tool.fullbore.contains("/hunt/") { text += "account = \"\(name)\"\n" }
      }
      try writeConfiguration(text)
      try await interrupt(server, "a.mov", "bob:")
      let resume = try await run("resume")
      #expect(resume.end == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(server.seen.heads.last?.contains("Bearer token-of-bob") == true)
      #expect(!server.seen.heads.joined().contains("token-of-anna"))
    }

    @Test func aFileSentToOneAccountIsSentAgainToAnother() async throws {
      let server = try await ServeProcess.start(in: scratch)
      var text = ""
      for name in ["anna", "bob"] {
        text += "[places.\(name)]\nurl = \"put+\(server.url)\"\naccount = \"\(name)\"\n"
      }
      try writeConfiguration(text)
      let file = try scratch.file("a.JPG", 10)
      #expect(try await run("push", file, "anna:").end == .exited(0))
      #expect(try await run("push", file, "anna:").output.contains("1 done before"))
      let other = try await run("push", file, "bob:", "--overwrite")
      #expect(other.end == .exited(0) && !other.output.contains("1 done before"), "\(other.output)\(other.errors)")
    }

    @Test func statusAndAbortTakeTheCredentialsOfThePlace() async throws {
      let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
      try writeConfiguration(
        "[places.nas]\nurl = \"tus+\(server.url)\"\ntoken-file = \"\(scratch.path("token"))\"\nbwlimit = \"1M\"\n")
      let push = try Command(
        Tool.fullbore, ["push", scratch.file("a.mov", 16 << 20), "nas:"], in: scratch,
        environment: ["XDG_CONFIG_HOME": scratch.path("config")])
      try await until("something has arrived") { server.folder.unfinished() > 0 ? true : nil }
      try await Task.sleep(for: .milliseconds(300))
      push.kill(SIGKILL)
      try await push.wait()
      let status = try await run("status", "--check")
      #expect(status.end == .exited(0), "\(status.output)\(status.errors)")
      let abort = try await run("abort", "--all")
      #expect(abort.end == .exited(0) && server.folder.unfinished() == 0, "\(abort.output)\(abort.errors)")
    }

    @Test func watchSendsToThePlace() async throws {
      let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
      try writeConfiguration(
        "[places.nas]\nurl = \"\(server.url)\"\ntoken-file = \"\(scratch.path("token"))\"\nsettle = \"100ms\"\n")
      try scratch.file("card/a.JPG", 10)
      let watch = try Command(
        Tool.fullbore, ["watch", scratch.path("card/"), "nas:in/"], in: scratch,
        environment: ["XDG_CONFIG_HOME": scratch.path("config")])
      try await until("the file arrives") { server.folder.files()["in/a.JPG"] }
      watch.kill(SIGINT)
      #expect(try await watch.wait() == .exited(130))
    }

    @Test func theCommandLineWins() async throws {
      let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
      try writeConfiguration(
        "[places.nas]\nurl = \"\(server.url)\"\ntoken-file = \"\(try tokenFile("wrong", "wrong"))\"\n")
      let file = try scratch.file("a.JPG", 10)
      #expect(try await run("push", file, "nas:").end == .exited(3))
      let push = try await run("push", file, "nas:", "--token-file", scratch.path("token"))
      #expect(push.end == .exited(0), "\(push.errors)")
    }

    /// Runs `places add` on a terminal, with a line of `answers` for each question. An answer may be a command and an answer,
    /// with `!` between them: the command runs before it is given.
    func onTerminal(_ words: [String], answers: [String], path: String? = nil) async throws -> Command {
      let program = """
        import os, pty, sys, time
        words, answers = sys.argv[2:], sys.argv[1].split('|')
        pid, terminal = pty.fork()
        if pid == 0: os.execv(words[0], words)
        text = b''
        while True:
          try: got = os.read(terminal, 4096)
          except OSError: break
          if not got: break
          text += got
          if text.rstrip(b' ').endswith(b':') and got.rstrip(b' ').endswith(b':') and answers:
            time.sleep(0.2)
            command, _, answer = answers.pop(0).rpartition('!')
            if command: os.system(command)
            os.write(terminal, answer.encode() + b'\\n')
        sys.stdout.buffer.write(text)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
      var environment = ["XDG_CONFIG_HOME": scratch.path("config")]
      if let path { environment["PATH"] = path }
      let python = try #require(Tool.find("python3"))
      let command = try Command(
        python, ["-c", program, answers.joined(separator: "|"), Tool.fullbore] + words, in: scratch,
        environment: environment)
      try await command.wait()
      return command
    }

    @Test(.enabled(if: Tool.find("python3") != nil), arguments: [false, true])
    func onATerminalItAsksForWhatIsMissing(_ hasKeyring: Bool) async throws {
      let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
      let tools = try scratch.folder("tools")
      if hasKeyring {
        let tool = "#!/bin/sh\nif [ $1 = store ]; then cat > \(tools)/kept; else cat \(tools)/kept; fi\n"
        try tool.write(toFile: "\(tools)/secret-tool", atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: "\(tools)/secret-tool")
      }
      let path = "\(tools):/usr/bin:/bin"
      let add = try await onTerminal(["places", "add"], answers: ["nas", server.url, "-", secret], path: path)
      #expect(add.end == .exited(0) && !add.output.contains(secret), "\(add.output)\(add.errors)")
      let written = try String(contentsOfFile: configuration, encoding: .utf8)
      let kept =
        hasKeyring
        ? "token-command = \"secret-tool lookup fullbore nas\""
        : "token-file = \"\(scratch.path("config"))/fullbore/nas.token\""
      #expect(written.contains(kept) && !written.contains(secret), "\(written)")
      let push = try await run("push", scratch.file("a.JPG", 10), "nas:", path: path)
      #expect(push.end == .exited(0), "\(push.errors)")
      if !hasKeyring {
        let file = "\(scratch.path("config"))/fullbore/nas.token"
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
      }
    }
  }
}
