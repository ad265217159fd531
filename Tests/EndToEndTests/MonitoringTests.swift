import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// What those who run `serve` see of it: health, metrics, log, hooks and units.
  @Suite(.serialized) struct MonitoringTests {
    let scratch = try! Scratch()

    private func curl(_ arguments: String...) async throws -> Command {
      let program = try #require(Tool.find("curl"), "curl is not installed: scripts/bootstrap test")
      let command = try Command(program, ["-sS"] + arguments, in: scratch)
      try await command.wait()
      return command
    }

    @Test func healthAndMetricsAreThere() async throws {
      let server = try await ServeProcess.start(in: scratch, "--metrics", "127.0.0.1:0")
      #expect(try await curl(server.url + "healthz").output == "ok\n")
      let url = try #require(server.command.errors.firstMatch(of: /metrics: (http:\S+)/)?.1)
      _ = try await curl("-T", scratch.file("a.jpg", 3000), server.url)
      let metrics = try await curl(String(url)).output
      #expect(metrics.contains("\nfullbore_uploads_finished_total 1\n"), "\(metrics)")
      guard Tool.find("promtool") != nil else {
        return print("promtool is not installed: metrics were not given to it")
      }
      let text = scratch.path("metrics")
      try metrics.write(toFile: text, atomically: false, encoding: .utf8)
      let check = try Command("sh", ["-c", "promtool check metrics < \"$0\"", text], in: scratch)
      #expect(try await check.wait() == .exited(0) && check.errors.isEmpty, "\(check.output)\(check.errors)")
    }

    @Test(arguments: ["common", "json"]) func theLogHasNoSecretsAndIsOpenedAgain(_ format: String) async throws {
      let log = scratch.path("access.log")
      let token = scratch.path("token")
      try "s3cret-token\n".write(toFile: token, atomically: false, encoding: .utf8)
      let server = try await ServeProcess.start(
        in: scratch, "--log", log, "--log-format", format, "--token-file", token)
      let credentials = ["-H", "Authorization: Bearer s3cret-token", "-H", "Referer: http://x/?s3cret-token"]
      _ = try await curl(
        credentials[0], credentials[1], "-T", scratch.file("a.jpg", 3000), server.url + "a.jpg?s3cret-q")
      func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
      try await until("there is a line") { text(log).contains("\n") ? true : nil }
      #expect(text(log).contains("PUT") && text(log).contains("/a.jpg") && text(log).contains("201"), "\(text(log))")
      #expect(text(log).contains("curl/") && text(log).contains("127.0.0.1") && !text(log).contains("s3cret"))
      try FileManager.default.moveItem(atPath: log, toPath: log + ".1")
      server.command.kill(SIGHUP)
      try await until("it is opened again") { FileManager.default.fileExists(atPath: log) ? true : nil }
      _ = try await curl(server.url + "later")
      server.command.kill(SIGTERM)
      #expect(try await server.command.wait() == .exited(0))
      #expect(text(log).contains("/later") && text(log).contains("401") && !text(log + ".1").contains("/later"))
    }

    /// Those who guess a token may close so.
    @Test func aClientThatResetsItsConnectionHasAnAddress() async throws {
      let log = scratch.path("access.log")
      let token = scratch.path("token")
      try "s3cret-token\n".write(toFile: token, atomically: false, encoding: .utf8)
      let server = try await ServeProcess.start(in: scratch, "--log", log, "--token-file", token)
      let request = Array("GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer guess\r\n\r\n".utf8)
      for _ in 0..<20 {
        let socket = try #require(Loopback.connect(port: server.port))
        #expect(request.withUnsafeBytes { Loopback.write(socket, $0) })
        Loopback.reset(socket)
      }
      let lines = try await until("every request has a line") {
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
        return lines.count == 20 ? lines : nil
      }
      #expect(lines.allSatisfy { $0.hasPrefix("127.0.0.1 - - [") }, "\(lines)")
    }

    /// Nobody listens at the URL.
    @Test func anUnreachableNotifyURLIsReportedOnce() async throws {
      let (closed, port) = Loopback.listen()
      Loopback.close(closed)
      let server = try await ServeProcess.start(in: scratch, "--notify", "http://127.0.0.1:\(port)/note")
      for number in 0..<5 { try scratch.file("gallery/\(number).jpg", 1000) }
      #expect(try await fullbore("push", scratch.path("gallery") + "/", server.url, in: scratch).0 == .exited(0))
      try await until("it is said while the server runs") {
        server.command.errors.contains(/was not told of '.*connection refused.*: trying again/) ? true : nil
      }
      server.command.kill(SIGTERM)
      #expect(try await server.command.wait() == .exited(0))
      let lines = server.command.errors.split(separator: "\n")
      let said = lines.filter { $0.contains("told of") || $0.contains("--notify") }
      #expect(said.count == 2, "\(said)")
      #expect(said.last?.contains("and 4 further files at the end: ") == true, "\(said)")
      #expect(said.last?.contains("connection refused") == true, "\(said)")
    }

    /// The port of the metrics is another one than that of the server.
    @Test func theOptionOfAPortThatIsTakenIsNamed() async throws {
      let (taken, port) = Loopback.listen()
      defer { Loopback.close(taken) }
      for option in ["--listen", "--metrics"] {
        let given = option == "--listen" ? [] : ["--listen", "127.0.0.1:0"]
        let serve = try Command(
          Tool.fullbore, ["serve", try scratch.folder("in"), option, "127.0.0.1:\(port)"] + given, in: scratch)
        #expect(try await serve.wait() == .exited(1))
        #expect(serve.errors.contains("; \(option) ADDRESS:PORT chooses another one"), "\(serve.errors)")
      }
    }

    @Test func aProgramIsRunForEachFile() async throws {
      let program = scratch.path("program")
      try "#!/bin/sh\nsleep 0.2\necho \"$1\" >> '\(scratch.path("seen"))'\ncase $1 in *bad*) exit 3;; esac\n"
        .write(toFile: program, atomically: false, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
      let server = try await ServeProcess.start(in: scratch, "--on-upload", program)
      for name in ["a $(x) b.jpg", "bad.jpg", "c.jpg"] { try scratch.file("gallery/\(name)", 1000) }
      let (end, push) = try await fullbore("push", scratch.path("gallery") + "/", server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      // What is queued is finished before the end.
      server.command.kill(SIGTERM)
      #expect(try await server.command.wait() == .exited(0))
      let seen = try String(contentsOfFile: scratch.path("seen"), encoding: .utf8).split(separator: "\n").sorted()
      let folder = URL(fileURLWithPath: scratch.path("received")).resolvingSymlinksInPath().path
      #expect(seen.map(String.init) == ["a $(x) b.jpg", "bad.jpg", "c.jpg"].map { "\(folder)/\($0)" })
      #expect(server.command.errors.contains("bad.jpg: the program ended with status 3"), "\(server.command.errors)")
      #expect(server.command.output.split(separator: "\n").count == 1, "\(server.command.output)")
    }

    /// A server of ours takes the first notification as a file.
    @Test func theNotifyURLReceivesTheFile() async throws {
      let receiver = try await ServeProcess.start(in: scratch)
      let folder = try scratch.folder("other")
      let server = try Command(
        Tool.fullbore, ["serve", folder, "--listen", "127.0.0.1:0", "--notify", receiver.url + "note"], in: scratch)
      let url = try await until("it listens") { server.output.split(separator: "\n").first }
      _ = try await curl("-T", scratch.file("a.jpg", 3000), String(url))
      let note = scratch.path("received/note")
      let text = try await until("the note arrives") { try? String(contentsOfFile: note, encoding: .utf8) }
      let start = #"{"event":"received","path":"a.jpg","length":3000,"address":"127.0.0.1","agent":"curl/"#
      #expect(text.hasPrefix(start) && text.contains(#","time":"20"#), "\(text)")
      server.kill(SIGTERM)
      #expect(try await server.wait() == .exited(0) && !server.errors.contains("warning"), "\(server.errors)")
    }

    @Test(
      .enabled(if: Tool.find("systemd-analyze") != nil, "there is no systemd-analyze"),
      arguments: ["fullbore-serve.service", "fullbore-watch@.service"])
    func theUnitsAreUnderstoodAndConfined(_ name: String) async throws {
      let unit = try String(
        contentsOf: Tool.checkout.appendingPathComponent("Packaging/systemd/\(name)"), encoding: .utf8)
      try #require(unit.contains("\nExecStart=fullbore "))
      let copy = scratch.path(name)
      try unit.replacingOccurrences(of: "\nExecStart=fullbore ", with: "\nExecStart=\(Tool.fullbore) ")
        .write(toFile: copy, atomically: false, encoding: .utf8)
      let verify = try Command("systemd-analyze", ["verify", copy], in: scratch)
      #expect(try await verify.wait() == .exited(0) && verify.errors.isEmpty, "\(verify.errors)")
      let security = try Command(
        "systemd-analyze", ["security", "--offline=true", "--threshold=29", "--no-pager", copy], in: scratch)
      #expect(try await security.wait() == .exited(0), "\(security.output.suffix(200))\(security.errors)")
    }
  }
}
