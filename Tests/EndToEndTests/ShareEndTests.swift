import Foundation
import Testing

extension EndToEnd {
  /// What `serve --share` says of its end, and that nobody who reads its output can hold it up.
  @Suite(.serialized) struct ShareEndTests {
    let scratch = try! Scratch()
    let curl: String

    init() throws { curl = try #require(Tool.find("curl"), "curl is not installed: scripts/bootstrap test") }

    private func ask(_ code: String, _ arguments: [String]) throws -> Command {
      try Command(curl, ["-sSf", "-H", "Authorization: Bearer \(code)"] + arguments, in: scratch)
    }

    @Test func theEndNamesWhatIsNotFinished() async throws {
      let server = try Command(
        Tool.fullbore,
        ["serve", try scratch.folder("received"), "--share", "--for", "6s", "--listen", "127.0.0.1:0"], in: scratch)
      let line = try await until("the server prints its link") { server.output.split(separator: "\n").first }
      let url = try #require(URL(string: String(line)))
      let (place, code) = ("http://127.0.0.1:\(url.port!)", try #require(url.fragment))

      let name = Data("holiday/film.mov".utf8).base64EncodedString()
      let creation = try ask(
        code,
        [
          "-D", scratch.path("head"), "-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H", "Upload-Length: 5000", "-H",
          "Upload-Metadata: relativePath \(name)", "\(place)/",
        ])
      #expect(try await creation.wait() == .exited(0), "\(creation.errors)")
      let head = try String(contentsOfFile: scratch.path("head"), encoding: .utf8)
      let upload = try #require(head.firstMatch(of: /(?i)location: (\S+)/)?.1)
      let target = try #require(URL(string: String(upload), relativeTo: URL(string: "\(place)/")))
      let patch = try ask(
        code,
        [
          "-X", "PATCH", "-H", "Tus-Resumable: 1.0.0", "-H", "Upload-Offset: 0", "-H",
          "Content-Type: application/offset+octet-stream", "--data-binary", "@\(try scratch.file("piece", 2048))",
          target.absoluteString,
        ])
      #expect(try await patch.wait() == .exited(0), "\(patch.errors)")
      let put = try ask(
        code, ["--limit-rate", "20k", "-T", try scratch.file("big", 4_000_000), "\(place)/big.jpg"])
      #expect(try await server.wait(.seconds(30)) == .exited(0))
      _ = try await put.wait()

      let errors = server.errors
      #expect(errors.contains("The time of --for is over"), "\(errors)")
      #expect(errors.contains("holiday/film.mov  2.00 KiB of 4.88 KiB"), "\(errors)")
      #expect(errors.contains("big.jpg  "), "\(errors)")
      #expect(errors.contains("serve this folder again") && errors.contains("from the beginning"), "\(errors)")
      #expect(errors.hasSuffix("0 files, 0 B received\n"), "\(errors)")
    }

    /// The reader of standard output takes the link, and nothing after it.
    @Test func aReaderThatDoesNotReadHoldsUpNobody() async throws {
      let script = """
        ( "$0" serve "$1" --share --json --for 12s --listen 127.0.0.1:0
        echo $? >"$2/status.new"; mv "$2/status.new" "$2/status" ) | {
        read -r line; echo "$line" >"$2/link.new"; mv "$2/link.new" "$2/link"
        while [ ! -e "$2/stop" ]; do sleep 0.1; done; }
        """
      let shell = try Command(
        "/bin/sh", ["-c", script, Tool.fullbore, try scratch.folder("received"), scratch.path], in: scratch)
      defer { _ = try? scratch.file("stop", 0) }
      let line = try await until("the link is there") {
        try? String(contentsOfFile: scratch.path("link"), encoding: .utf8)
      }
      let link = try #require(line.firstMatch(of: /http:[^"\s]+/)?.0)
      let url = try #require(URL(string: String(link)))
      let agent = String(repeating: "x", count: 14_000)
      for number in 0..<8 {
        let put = try ask(
          try #require(url.fragment),
          [
            "-A", agent, "--max-time", "5", "-T", try scratch.file("small", 100),
            "http://127.0.0.1:\(url.port!)/\(number)",
          ])
        #expect(try await put.wait() == .exited(0), "\(number): \(put.errors)")
      }
      let status = try await until("the server has ended, although nobody reads", .seconds(40)) {
        try? String(contentsOfFile: scratch.path("status"), encoding: .utf8)
      }
      #expect(status == "0\n")
      try scratch.file("stop", 0)
      _ = try await shell.wait()
    }

    /// Others could replace the key, so that the person who has it reads what is sent.
    @Test func anOpenFileOfItsOwnCertificateIsWarnedOf() async throws {
      let state = try scratch.folder("state/fullbore")
      for mode in [nil, 0o666] as [Int?] {
        if let mode {
          try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: "\(state)/tls.pem")
        }
        let server = try Command(
          Tool.fullbore,
          [
            "serve", try scratch.folder("received"), "--share", "--listen", "127.0.0.1:0", "--tls", "self", "--for",
            "1s",
          ], in: scratch, environment: ["XDG_STATE_HOME": scratch.path("state")])
        #expect(try await server.wait(.seconds(30)) == .exited(0), "\(server.errors)")
        #expect(server.errors.contains("chmod 600") == (mode != nil), "\(server.errors)")
      }
    }
  }
}
