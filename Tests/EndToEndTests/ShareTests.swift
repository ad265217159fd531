import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `serve --share`, and a push to it.
  @Suite(.serialized) struct ShareTests {
    let scratch = try! Scratch()

    /// Starts the server and returns it with its link.
    private func share(_ options: String...) async throws -> (Command, URL, code: String) {
      let server = try Command(
        Tool.fullbore, ["serve", try scratch.folder("received"), "--share", "--listen", "127.0.0.1:0"] + options,
        in: scratch)
      let line = try await until("the server prints its link") { server.output.split(separator: "\n").first }
      let link = try #require(line.firstMatch(of: /http:[^"\s]+/)?.0)
      let url = try #require(URL(string: String(link)))
      return (server, url, try #require(url.fragment))
    }

    @Test(arguments: ["put", "tus", "resumable"], [[], ["--receive-only"]])
    func aPushArrivesAndIsReported(_ way: String, _ options: [String]) async throws {
      for number in 0..<5 { try scratch.file("gallery/IMG \(number).jpg", 100_000 * number) }
      let (server, url, code) = try await share("--json", options.first ?? "--max-size", options.isEmpty ? "1G" : "-q")
      try Data("\(code)\n".utf8).write(to: URL(filePath: scratch.path("code")))
      let target = "\(way)+http://127.0.0.1:\(url.port!)/"
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery") + "/", target, "--token-file", scratch.path("code"), in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: Folder(scratch.path("received")))
      let lines = try await until("all are reported") {
        let lines = server.output.split(separator: "\n").filter { $0.contains("\"received\"") }
        return lines.count == 5 ? lines : nil
      }
      #expect(lines.contains { $0.contains(#""path":"IMG 3.jpg","length":300000,"address":"127.0.0.1""#) }, "\(lines)")
    }

    /// A client that sends slowly, and says that it is this device.
    private func send(_ file: String, from device: String, to url: URL, _ code: String) throws -> Command {
      try Command(
        try #require(Tool.find("curl"), "curl is not installed: scripts/bootstrap test"),
        [
          "-sS", "-A", "Mozilla/5.0 (\(device); x)", "-H", "Authorization: Bearer \(code)", "--limit-rate", "500k",
          "-T",
          try scratch.file(file, 3 << 20), "http://127.0.0.1:\(url.port!)/\(file)",
        ], in: scratch)
    }

    @Test func programsAreToldWhatIsBeingSent() async throws {
      let (server, url, code) = try await share("--json")
      let sender = try send("film.mov", from: "iPhone", to: url, code)
      let schema = try EventSchema(of: "serve")
      let told = try await until("the rate is told") {
        server.output.split(separator: "\n").first {
          $0.contains(#""path":"film.mov","received":"#) && $0.contains("per_second")
        }
      }
      #expect(told.contains(#""address":"127.0.0.1","agent":"Mozilla/5.0 (iPhone; x)""#), "\(told)")
      #expect(told.contains(#""length":3145728"#), "\(told)")
      #expect(try await sender.wait() == .exited(0))
      server.kill(SIGTERM)
      #expect(try await server.wait() == .exited(0))
      for line in server.output.split(separator: "\n") {
        let event = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(schema.fault(in: event) == nil, "\(line)")
      }
    }

    @Test(.needs(.tmux)) func aTerminalShowsWhoSendsWhat() async throws {
      let terminal = try await EmulatedTerminal(
        ["serve", try scratch.folder("received"), "--share", "--listen", "127.0.0.1:0"], width: 100, in: scratch)
      let first = try await terminal.lines("the link") { $0.contains { $0.hasPrefix("Receiving into") } }
      let link = try #require(first.first { $0.hasPrefix("http://") }?.trimmingCharacters(in: .whitespaces))
      let url = try #require(URL(string: link))
      let senders = try ["iPhone", "Android"].map {
        try send("\($0).mov", from: $0, to: url, try #require(url.fragment))
      }
      func isRunning(_ line: String, _ device: String) -> Bool {
        line.contains(try! Regex("^127.0.0.1 \\(\(device)\\)  \(device).mov  [0-9]+ % of 3.00 MiB  .*[KM]iB/s$"))
      }
      let lines = try await terminal.lines("both films") { lines in
        ["iPhone", "Android"].allSatisfy { device in lines.contains { isRunning($0, device) } }
      }
      #expect(lines.count { $0.contains("2 requests") } == 1, "\(lines)")
      for sender in senders { #expect(try await sender.wait() == .exited(0)) }
      let ended = try await terminal.lines("the films are named, and nothing runs") {
        !$0.contains { $0.hasPrefix("127.0.0.1 (") } && $0.contains { $0.contains("waiting") }
      }
      for device in ["iPhone", "Android"] {
        #expect(ended.contains("\(device).mov  3.00 MiB  from 127.0.0.1 (\(device))"), "\(ended)")
      }
      #expect(ended.count { $0.contains("waiting") || $0.contains("request") } == 1, "\(ended)")
      try await terminal.end()
    }

    /// Programs that send a password only when they are asked for one, at a server whose page asks browsers itself.
    @Test(arguments: [
      ["wget", "-q", "-O", "/dev/null", "--user", "any", "--password"],
      ["curl", "-sfo", "/dev/null", "--anyauth", "-u"],
    ]) func programsAreAskedForThePassword(_ program: [String]) async throws {
      let (server, url, code) = try await share("--download")
      try scratch.file("received/a.txt", 1000)
      guard let tool = Tool.find(program[0]) else { return print("skipped: there is no \(program[0])") }
      let password = program[0] == "curl" ? "any:\(code)" : code
      let get = try Command(
        tool, program.dropFirst() + [password, "http://127.0.0.1:\(url.port!)/a.txt"], in: scratch)
      #expect(try await get.wait() == .exited(0), "\(get.errors)")
      server.kill(SIGTERM)
    }

    /// The certificate is valid for the machine's addresses, is the one whose fingerprint was printed, and is kept.
    @Test func theServerMakesACertificateOfItsOwn() async throws {
      var fingerprints: [String] = []
      for _ in 0..<2 {
        let server = try Command(
          Tool.fullbore,
          ["serve", try scratch.folder("received"), "--share", "--listen", "127.0.0.1:0", "--tls", "self"], in: scratch,
          environment: ["XDG_STATE_HOME": scratch.path("state")])
        let line = try await until("the server prints its link") { server.output.split(separator: "\n").first }
        let url = try #require(URL(string: String(line)))
        #expect(url.scheme == "https")
        let printed = try await until("it prints the fingerprint") {
          server.errors.firstMatch(of: /\n(([0-9A-F]{2}:){31}[0-9A-F]{2})\n/)?.1
        }
        let file = scratch.path("state/fullbore/tls.pem")
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let shown = try Command(
          "/usr/bin/openssl", ["x509", "-in", file, "-noout", "-fingerprint", "-sha256"], in: scratch)
        #expect(try await shown.wait() == .exited(0) && shown.output.contains(printed), "\(shown.output)")
        let push = try Command.fullbore(
          "push", try scratch.file("a.jpg", 5000), "put+https://127.0.0.1:\(url.port!)/a.jpg", "--cacert", file,
          "--header", "Authorization: Bearer \(url.fragment!)", in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        server.kill(SIGTERM)
        #expect(try await server.wait() == .exited(0))
        fingerprints.append(String(printed))
      }
      #expect(fingerprints[0] == fingerprints[1])
    }

    @Test func aPersonSeesWhatComesAndTheServerEndsByItself() async throws {
      let (server, url, code) = try await share("--for", "3s")
      #expect(code.wholeMatch(of: /[2-9a-z-]{14}/) != nil)
      let sender = try Command(
        try #require(Tool.find("curl"), "curl is not installed: scripts/bootstrap test"),
        [
          "-sS", "-A", "Mozilla/5.0 (iPhone; CPU)", "-H", "Authorization: Bearer \(code)", "-T",
          scratch.file("a.jpg", 2048), "http://127.0.0.1:\(url.port!)/a.jpg",
        ], in: scratch)
      #expect(try await sender.wait() == .exited(0))
      #expect(try await server.wait(.seconds(20)) == .exited(0))
      #expect(server.errors.contains("a.jpg  2.00 KiB  from 127.0.0.1 (iPhone)"), "\(server.errors)")
      #expect(server.errors.hasSuffix("1 file, 2.00 KiB received\n"), "\(server.errors)")
    }
  }
}
