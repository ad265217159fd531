import BlobTesting
import Foundation
import Platform
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore doctor` with servers themselves: WebDAV, addresses, servers that are absent or hostile.
  @Suite(.serialized) struct DoctorServerTests {
    private let scratch = try! Scratch()

    /// The same server with a wrong line, and with the line that the doctor prints.
    @Test(.needs(.apache)) func webDAVHasNoFindingAndKeepsNoFile() async throws {
      let folder = Folder(try scratch.folder("received"))
      let limited = try await DavServer.apache.start(
        into: folder.path, rules: ["LimitRequestBody 1048576"], in: scratch)
      let other = try Scratch()
      let server = try await DavServer.apache.start(
        into: try other.folder("received"), rules: ["LimitRequestBody 0"], in: other)
      async let wrong = DoctorRun("dav+\(limited.url)/", in: scratch)
      let right = try await DoctorRun("dav+\(server.url)/", in: other)
      #expect(right.kinds.isEmpty && right.end == .exited(0), "\(right.text)")
      #expect(Folder(other.path("received")).files().isEmpty)
      let run = try await wrong
      #expect(run.kinds == ["body-limit"] && run.end == .exited(1), "\(run.text)")
      #expect(run.findings.first?.what.contains("(1,048,576 bytes)") == true, "\(run.text)")
      #expect(run.lines("body-limit", for: "Apache") == ["LimitRequestBody 0"])
      #expect(folder.files().isEmpty)
    }

    /// The temporary name of an upload is not that of the test file.
    @Test func doctorNamesATestFileThatAWebDAVServerKeeps() async throws {
      let server = DavPeer { request in
        ["MOVE", "DELETE"].contains(request.method) ? HTTPPeer.Reply(403) : nil
      }
      defer { server.stop() }
      let run = try await DoctorRun("dav+\(server.endpoint)", ["--yes", "--pause", "1s"], in: scratch)
      #expect(server.unfinished() == 128 << 10)
      let name = try #require(server.requests.first { $0.hasPrefix("PUT /.fullbore-") }?.dropFirst("PUT /".count))
      #expect(run.text.contains("the test file of 128 KiB by hand: \(server.endpoint)\(name)"), "\(run.text)")
    }

    /// The proxy is nginx, and the server behind it Apache.
    @Test(.needs(.nginx, .apache)) func findsWhatIsWrongBeforeWebDAV() async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (line, kind) in [
          ("limit_except GET PUT DELETE OPTIONS PROPFIND MKCOL { deny all; }", "method"),
          ("client_max_body_size 5m;", "body-limit"), ("client_body_timeout 1s;", "body-timeout"),
          ("", "location"),
        ] { group.addTask { try await Self.expectBeforeWebDAV(line, kind) } }
        try await group.waitForAll()
      }
    }

    private static func expectBeforeWebDAV(_ line: String, _ kind: String) async throws {
      let scratch = try Scratch()
      let folder = Folder(try scratch.folder("received"))
      let server = try await DavServer.apache.start(into: folder.path, rules: ["LimitRequestBody 0"], in: scratch)
      let port = try #require(URL(string: server.url)?.port)
      let host = ["proxy_set_header Host $http_host;"]
      var options = ["--yes", "--pause", kind == "body-timeout" ? "3s" : "1s"]
      var certificate: TestCertificate?
      // Then the scheme of a URL in a field is not that of the server.
      if kind == "location" {
        let root = try await Authority.root(in: scratch)
        certificate = try await root.certificate(for: "IP:127.0.0.1", until: Date() + 90 * 86_400, in: scratch)
        options += ["--cacert", root.certificate.path]
      }
      let proxy = try await DoctorFront.nginx.start(
        behind: port, [line] + host, secure: certificate, in: scratch)
      let run = try await DoctorRun("dav+\(proxy.url)/", options, in: scratch)
      #expect(run.kinds == [kind], "\(line): \(run.text)")
      #expect(folder.files().isEmpty, "\(line)")
      let lines = run.lines(kind, for: "nginx")
      if lines.isEmpty { return }
      let mended = try await DoctorFront.nginx.start(
        behind: port, lines + host.filter { !lines.contains($0) }, secure: certificate, in: scratch)
      let again = try await DoctorRun("dav+\(mended.url)/", options, in: scratch)
      #expect(again.kinds.isEmpty && again.end == .exited(0), "\(line), mended by \(lines): \(again.text)")
    }

    /// tusd names uploads by the host and the scheme that it is told.
    @Test(
      .needs(.nginx, .openssl), .enabled(if: Tool.find("tusd") != nil, "tusd is not installed"),
      arguments: [false, true])
    func namesThatATusServerGivesAreMended(_ isSecure: Bool) async throws {
      let tusd = try await PeerServer(try #require(Tool.find("tusd")), in: scratch) { port in
        ["-host", "127.0.0.1", "-port", "\(port)", "-base-path", "/", "-upload-dir", try scratch.folder("tusd")]
          + (isSecure ? ["-behind-proxy"] : [])
      }
      let port = try #require(URL(string: tusd.url)?.port)
      let root = try await Authority.root(in: scratch)
      let end = Date() + 90 * 86_400
      let certificate = try await root.certificate(for: "IP:127.0.0.1", until: end, in: scratch)
      let options = ["--yes", "--pause", "1s", "--cacert", root.certificate.path]
      func examine(_ lines: [String]) async throws -> DoctorRun {
        let proxy = try await DoctorFront.nginx.start(
          behind: port, lines, secure: isSecure ? certificate : nil, in: scratch)
        return try await DoctorRun(proxy.url + "/", options, in: scratch)
      }
      let run = try await examine([isSecure ? "proxy_set_header Host $http_host;" : "proxy_redirect off;"])
      #expect(run.kinds == ["location"] && run.end == .exited(1), "\(run.text)")
      let difference = isSecure ? "the scheme is http instead of https" : "the port is \(port) instead of"
      #expect(run.findings.first?.what.contains(difference) == true, "\(run.text)")
      let again = try await examine(run.lines("location", for: "nginx"))
      #expect(again.kinds.isEmpty && again.end == .exited(0), "\(again.text)")
      let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path("tusd"))
      #expect(left.isEmpty, "\(left)")
    }

    /// Without `--yes`, and with nobody to ask, no request changes anything.
    @Test func doctorWritesNothingWithoutYes() async throws {
      let server = try await ServeProcess.start(in: scratch, "--log", "-")
      let run = try await DoctorRun(server.url, [], in: scratch)
      #expect(run.kinds.isEmpty && run.end == .exited(0), "\(run.text)")
      #expect(run.text.contains("no test file was written"))
      #expect(!server.command.output.contains("POST") && !server.command.output.contains("PUT"))
    }

    @Test func namesASecondAddressThatDoesNotAnswer() async throws {
      let server = try await ServeProcess.start(in: scratch, "--host", "media.example")
      let environment = try Shim.environment(.resolver("media.example", "127.0.0.1 127.0.0.2"), in: scratch)
      let url = "http://media.example:\(server.port)/"
      let run = try await DoctorRun(url, ["--yes", "--pause", "1s"], environment: environment, in: scratch)
      #expect(run.kinds == ["address"] && run.end == .exited(1), "\(run.text)")
      #expect(run.findings.first?.what.contains("127.0.0.2") == true)
      let right = try Shim.environment(.resolver("media.example", "127.0.0.1"), in: scratch)
      let again = try await DoctorRun(url, ["--yes", "--pause", "1s"], environment: right, in: scratch)
      #expect(again.kinds.isEmpty && again.end == .exited(0), "\(again.text)")
    }

    @Test func namesAnIPv6AddressThatDoesNotAnswer() async throws {
      let server = try await ServeProcess.start(in: scratch, "--host", "media.example")
      let environment = try Shim.environment(.resolver("media.example", "::1 127.0.0.1"), in: scratch)
      let url = "http://media.example:\(server.port)/"
      let run = try await DoctorRun(url, ["--yes", "--pause", "1s"], environment: environment, in: scratch)
      #expect(run.kinds == ["address"] && run.end == .exited(1), "\(run.text)")
      #expect(run.findings.first?.what.contains("IPv6 address ::1") == true, "\(run.text)")
    }

    @Test func saysThatNoServerIsThere() async throws {
      let server = try await ServeProcess.start(in: scratch)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      let run = try await DoctorRun(server.url, in: scratch)
      #expect(run.end == .exited(3) && run.kinds.isEmpty, "\(run.text)")
      let environment = try Shim.environment(.resolver("media.example", ""), in: scratch)
      let unknown = try await DoctorRun("http://media.example/", environment: environment, in: scratch)
      #expect(unknown.end == .exited(3) && unknown.text.contains("no address is known"), "\(unknown.text)")
    }

    /// A server's own limit, which it announces, is no fault.
    @Test(arguments: ["1M", "5M", "20M"]) func smallServersHaveNoFinding(_ size: String) async throws {
      let server = try await ServeProcess.start(in: scratch, "--max-size", size)
      let run = try await DoctorRun(server.url, in: scratch)
      #expect(run.kinds.isEmpty && run.end == .exited(0), "\(run.text)")
      #expect(server.folder.files().isEmpty)
    }

    /// As a person reads it.
    @Test(.needs(.nginx)) func printsTheConsequenceAndTheLines() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let proxy = try await DoctorFront.nginx.start(behind: server.port, ["client_max_body_size 1m;"], in: scratch)
      let (end, doctor) = try await fullbore("doctor", proxy.url + "/", in: scratch)
      #expect(end == .exited(1))
      let expected = """
        WRONG  body-limit: bodies over 1.00 MiB (1,048,576 bytes) are refused with 413 by nginx
               Consequence: fullbore sends larger files in parts, with one request for each, which is slower; most other \
        clients fail.
               To mend it, nginx, in the location or server block:
                   client_max_body_size 0;
        """
      #expect(doctor.output.contains(expected), "\(doctor.output)")
      #expect(doctor.output.hasSuffix("\n1 finding.\n"), "\(doctor.output)")
    }

    /// Ctrl-C in the middle of an upload: what is on the server is removed all the same.
    @Test func removesItsUploadWhenInterrupted() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let doctor = try Command.fullbore("doctor", "--yes", "--pause", "60s", server.url, in: scratch)
      try await until("the body pauses") {
        if let end = doctor.end { throw Command.Failure("\(end) \(doctor.output)") }
        return doctor.output.contains("the server has the first bytes") && server.folder.received() > 200_000
          ? true : nil
      }
      doctor.kill(SIGINT)
      #expect(try await doctor.wait() == .exited(130), "\(doctor.output)")
      #expect(server.folder.received() == 0)
    }

    /// Its addresses are tried in place of the server's.
    @Test func namesTheProxyInUse() async throws {
      let server = try await ServeProcess.start(in: scratch)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      let proxy = "http://127.0.0.1:\(server.port)"
      for (options, environment) in [(["--proxy", proxy], [:]), ([], ["http_proxy": proxy])] {
        let run = try await DoctorRun("http://media.example/", options, environment: environment, in: scratch)
        #expect(run.end == .exited(3) && run.text.contains("requests go through \(proxy)"), "\(run.text)")
        #expect(run.text.contains("no address of 127.0.0.1 answers at port \(server.port)"), "\(run.text)")
      }
    }

    @Test func asksForCredentials() async throws {
      let token = scratch.path("token")
      try "a-token-of-a-test".write(toFile: token, atomically: true, encoding: .utf8)
      let server = try await ServeProcess.start(in: scratch, "--token-file", token)
      let run = try await DoctorRun(server.url, in: scratch)
      #expect(run.kinds == ["refused"] && run.end == .exited(1), "\(run.text)")
      let known = try await DoctorRun(
        server.url, ["--yes", "--pause", "1s", "--token-file", token], in: scratch)
      #expect(known.kinds.isEmpty && known.end == .exited(0), "\(known.text)")
      #expect(!known.text.contains("a-token-of-a-test"))
    }

    /// Whatever a server answers, the examination ends within its bounds, and ends by itself.
    @Test func endsWithHostileServers() async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for kind in HostileServer.allCases {
          group.addTask {
            let scratch = try Scratch()
            let server = try await kind.start(in: scratch)
            let run = try await DoctorRun(
              "\(server.url)/", ["--yes", "--pause", "1s", "--timeout", "2s", "--finish-timeout", "2s"], in: scratch)
            let isOrdinary = [0, 1, 3].contains { run.end == .exited($0) }
            #expect(isOrdinary, "\(kind): \(run.end) \(run.text)")
            #expect(!run.text.contains("\u{1b}"), "\(kind)")
            // An upload that already has bytes is somebody's: nothing is written to it, and it is not deleted.
            if kind == .lies {
              #expect(
                run.kinds.contains("location") && run.text.contains("is not the one that was just begun"), "\(run.text)"
              )
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

/// A server that misbehaves; each is a few lines of Python.
enum HostileServer: String, CaseIterable, Sendable {
  /// Takes connections and says nothing.
  case silent
  case closes
  case notHTTP
  /// Control characters, sizes beyond all numbers.
  case strangeFields
  /// Refuses everything for its size.
  case refusesAll
  /// 104 without end.
  case endlessInterim
  /// A tus server that says that it has more than it was sent.
  case lies
  case redirects

  private var answer: String {
    switch self {
    case .silent: "while True: time.sleep(1)"
    case .closes: "pass"
    case .notHTTP: "c.sendall(b'\\x00\\xff' * 100000)"
    case .strangeFields:
      "c.sendall(b'HTTP/1.1 200 OK\\r\\nServer: \\x1b[31mnginx\\x1b\\r\\nTus-Version: 1.0.0\\r\\nTus-Extension: creation,creation-with-upload,\\x1b[2J\\r\\n'"
        + " b'Tus-Max-Size: 99999999999999999999\\r\\nUpload-Limit: max-size=-5, x=()\\r\\nLocation: http://[::1%25x]:99999/\\r\\n'"
        + " b'Content-Length: 0\\r\\n\\r\\n')"
    case .refusesAll:
      "c.sendall(b'HTTP/1.1 %d X\\r\\nTus-Version: 1.0.0\\r\\nTus-Extension: creation,creation-with-upload\\r\\nContent-Length: 0\\r\\n\\r\\n'"
        + " % (200 if head.startswith(b'OPTIONS') else 413))"
    case .endlessInterim:
      "\n    while True: c.sendall(b'HTTP/1.1 104 X\\r\\nUpload-Draft-Interop-Version: 8\\r\\nUpload-Offset: 5\\r\\n\\r\\n')"
    case .lies:
      "c.sendall(b'HTTP/1.1 %d X\\r\\nTus-Version: 1.0.0\\r\\nTus-Resumable: 1.0.0\\r\\nTus-Extension: creation,creation-with-upload,termination\\r\\n'"
        + " b'Location: /up\\r\\nUpload-Offset: 9223372036854775807\\r\\nContent-Length: 0\\r\\n\\r\\n'"
        + " % (201 if head.startswith(b'POST') else 200))"
    case .redirects: "c.sendall(b'HTTP/1.1 307 X\\r\\nLocation: /a\\r\\nContent-Length: 0\\r\\n\\r\\n')"
    }
  }

  func start(in scratch: Scratch) async throws -> PeerServer {
    let python = try #require(Tool.find("python3"), "python3 is not installed")
    let program = """
      import socket, sys, threading, time
      def serve(c):
        try:
          head = b''
          while b'\\r\\n\\r\\n' not in head:
            got = c.recv(65536)
            if not got: return
            head += got
          \(answer)
        except OSError: pass
        finally: c.close()
      s = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64)
      while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
      """
    return try await PeerServer(python, in: scratch) { port in ["-c", program, "\(port)"] }
  }
}
