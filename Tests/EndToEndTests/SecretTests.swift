import BlobTesting
import TestSupport
import BlobUpload
import Blobs
import Foundation
import Testing

extension EndToEnd {
  /// Secrets are sent only to their own server and leave no trace on this machine: not in the journal, not in the
  /// output, and not where other processes can see them.
  @Suite(.serialized) struct SecretTests {
    let scratch = try! Scratch()
    let plants: Plants

    init() throws { plants = try Plants(in: scratch) }

    enum Outcome: String, CaseIterable {
      case success, unauthorized, forbidden, failure, redirected, downgraded, unreachable, wrongProxyPassword, killed
    }

    static let nothing = "Content-Length: 0\r\n\r\n"
    /// The response of a server that has stored a file with its modification time, so the client does not check the
    /// file.
    static let stored = "X-OC-MTime: accepted\r\n" + nothing

    /// A server that has no such file, and is silent in the middle of a body, after four steps.
    static let held: [ScriptedPeer.Step] = [
      .readRequest, .send("HTTP/1.1 404 None\r\n" + nothing), .readHead, .read(100_000), .hold,
    ]

    /// Some servers repeat a credential in their response: `told`.
    func script(_ outcome: Outcome, told: String) -> [ScriptedPeer.Step] {
      func every(_ head: String) -> [ScriptedPeer.Step] {
        Array(repeating: [.readRequest, .send("HTTP/1.1 \(head)")], count: 8).flatMap { $0 }
      }
      switch outcome {
      case .success: return every("201 Created\r\n" + Self.stored)
      // A server that repeats the credential.
      case .unauthorized:
        let text = "nobody has \(told)"
        return every("401 Who\r\nContent-Type: text/plain\r\nContent-Length: \(text.count)\r\n\r\n\(text)")
      case .forbidden:
        let text = "no such key: \(plants.key)"
        return every("403 No\r\nContent-Type: text/plain\r\nContent-Length: \(text.count)\r\n\r\n\(text)")
      case .failure: return every("500 Oops\r\n" + Self.nothing)
      case .redirected:
        let place = "http://\(told):x@evil.example/\(plants.cookie)?key=\(plants.key)"
        return every("307 There\r\nLocation: \(place)\r\n" + Self.nothing)
      case .downgraded: return every("308 There\r\nLocation: http://media.example:81/in/\r\n" + Self.nothing)
      case .unreachable, .wrongProxyPassword: return [.close]
      case .killed: return Self.held
      }
    }

    func expected(_ outcome: Outcome) -> Command.End {
      switch outcome {
      case .success: .exited(0)
      // A proxy's response that the server is unreachable is still a response.
      case .failure, .unreachable: .exited(1)
      case .killed: .killed(by: SIGKILL)
      default: .exited(3)
      }
    }

    @Test(arguments: Outcome.allCases, ["--json", "--verbose"])
    func secretsLeaveNoTrace(_ outcome: Outcome, _ mode: String) async throws {
      let file = try scratch.file("a.jpg", outcome == .killed ? 8 << 20 : 1000)
      try await push(
        file, outcome, mode, ["--token-file", plants.path("token")], plants.token, "Bearer " + plants.token)
      try await push(
        file, outcome, mode, ["--netrc-file", plants.path("netrc")], plants.password, base64("me:" + plants.password))
      try plants.expectNoTrace()
    }

    func push(
      _ file: String, _ outcome: Outcome, _ mode: String, _ credential: [String], _ told: String, _ field: String
    ) async throws {
      let peer = ScriptedPeer(script(outcome, told: told))
      let closed = Loopback.listen()
      Loopback.close(closed.descriptor)
      let password = outcome == .wrongProxyPassword ? "another" : plants.proxyPassword
      let proxy = ProxyPeer(
        to: outcome == .unreachable ? closed.port : peer.port, .wants(user: "me", password: password))
      try plants.write(proxyPort: proxy.port)
      let push = try Command(
        Tool.fullbore,
        ["push", mode, "--overwrite", "--retries", "1", "--journal", scratch.newPath("journal")] + credential
          + ["--header", "@" + plants.path("fields"), "--proxy", "@" + plants.path("proxy"), file]
          + ["put+http://media.example/in/"], in: scratch)
      if outcome == .killed {
        await peer.wait { $0.steps.last == 4 }
        plants.expectNone(in: try commandLines(), "the command line")
        push.kill(SIGKILL)
      }
      #expect(try await push.wait() == expected(outcome), "\(push.output)\(push.errors)")
      #expect(Set(proxy.seen.targets).isSubset(of: ["media.example"]))
      // The secrets were sent; otherwise the test would prove nothing.
      #expect(proxy.seen.heads.contains { $0.contains(base64("me:" + plants.proxyPassword)) })
      if outcome == .unreachable || outcome == .wrongProxyPassword { return }
      let heads = peer.seen.heads.joined()
      for secret in [field, plants.key, plants.cookie] { #expect(heads.contains(secret)) }
    }

    /// The resume reads the secrets from their original location, which is all that the journal stores.
    @Test func aKilledPushIsResumedWithTheSameCredentials() async throws {
      let peer = ScriptedPeer(Self.held, [.readRequest, .send("HTTP/1.1 201 Made\r\n" + Self.stored)])
      let proxy = ProxyPeer(to: peer.port, .wants(user: "me", password: plants.proxyPassword))
      try plants.write(proxyPort: proxy.port)
      let file = try scratch.file("a.jpg", 8 << 20)
      let push = try Command.fullbore(
        "push", "--overwrite", "--netrc-file", plants.path("netrc"), "--header", "@" + plants.path("fields"), "--proxy",
        "@" + plants.path("proxy"), file, "put+http://media.example/in/", in: scratch)
      await peer.wait { $0.steps.last == 4 }
      try await untilEveryFileIsKnown(in: scratch)
      push.kill(SIGKILL)
      try await push.wait()
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      let head = try #require(peer.seen.heads.last)
      #expect(head.contains("Basic " + base64("me:" + plants.password)) && head.contains(plants.key))
      try plants.expectNoTrace()
    }

    enum S3Outcome: String, CaseIterable { case success, refused, expired, failure }

    /// The keys come from the environment or a profile, and the server repeats them in its refusals.
    @Test(arguments: S3Outcome.allCases, ["environment", "profile"])
    func s3KeysLeaveNoTrace(_ outcome: S3Outcome, _ place: String) async throws {
      let file = try scratch.file("a.jpg", 1000)
      let peer = ScriptedPeer(s3Script(outcome))
      for mode in ["--json", "--verbose"] {
        let push = try s3Push(mode, file, at: peer.port, place)
        // A server error is not a refusal; only this one file has failed.
        let wanted: Int32 =
          switch outcome {
          case .success: 0
          case .failure: 1
          case .refused, .expired: 3
          }
        #expect(try await push.wait() == .exited(wanted), "\(push.output)\(push.errors)")
      }
      try expectNoTraceOfS3(in: peer.seen.heads.joined())
    }

    @Test(arguments: ["environment", "profile"]) func s3KeysLeaveNoTraceOfAKilledPush(_ place: String) async throws {
      struct Hold { var (heads, isReached, isReleased) = ("", false, false) }
      let hold = Monitor(Hold())
      defer { hold.update { $0.isReleased = true } }
      var options = S3Peer.Options()
      options.credentials = S3Credentials(
        accessKey: "AKIAPLANTED", secretKey: plants.key, sessionToken: plants.token)
      options.refuse = { _, request in
        hold.update { $0.heads += request.fields.map { "\($0.key): \($0.value)\n" }.joined() }
        if request.query("partNumber") == nil { return nil }
        hold.update { $0.isReached = true }
        _ = hold.wait { $0.isReleased ? true : nil }
        return nil
      }
      let peer = S3Peer(options)
      let push = try s3Push("--json", try scratch.file("a.jpg", 40 << 20), at: peer.port, place)
      let end = ContinuousClock.now + .seconds(30)
      while !hold.update({ $0.isReached }), ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(5)) }
      plants.expectNone(in: try commandLines(), "the command line")
      push.kill(SIGKILL)
      #expect(try await push.wait() == .killed(by: SIGKILL), "\(push.output)\(push.errors)")
      try expectNoTraceOfS3(in: hold.update { $0.heads })
    }

    func s3Push(_ mode: String, _ file: String, at port: Int, _ place: String) throws -> Command {
      try
        "[planted]\naws_access_key_id = AKIAPLANTED\naws_secret_access_key = \(plants.key)\naws_session_token = \(plants.token)\n"
        .write(toFile: plants.path("aws"), atomically: true, encoding: .utf8)
      var environment = [
        "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": plants.path("aws"), "AWS_REGION": "us-east-1",
        "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
      ]
      if place == "profile" {
        environment["AWS_PROFILE"] = "planted"
        environment["AWS_ACCESS_KEY_ID"] = ""
      } else {
        environment["AWS_ACCESS_KEY_ID"] = "AKIAPLANTED"
        environment["AWS_SECRET_ACCESS_KEY"] = plants.key
        environment["AWS_SESSION_TOKEN"] = plants.token
      }
      return try Command(
        Tool.fullbore,
        [
          "push", mode, "--overwrite", "--retries", "1", "--journal", scratch.newPath("journal"), "--endpoint",
          "http://127.0.0.1:\(port)", file, "s3://media/in/",
        ], in: scratch, environment: environment)
    }

    /// The key id was sent, otherwise the test would prove nothing; the signing key was not.
    func expectNoTraceOfS3(in heads: String) throws {
      #expect(heads.contains("x-amz-security-token: \(plants.token)") && heads.contains("AKIAPLANTED"))
      plants.expectNone(
        in: Data(heads.replacingOccurrences(of: plants.token, with: "").utf8), "what was sent")
      try plants.expectNoTrace()
    }

    func s3Script(_ outcome: S3Outcome) -> [ScriptedPeer.Step] {
      func answer(_ status: String, _ text: String, _ fields: String = "") -> [ScriptedPeer.Step] {
        let head = "HTTP/1.1 \(status)\r\nContent-Type: application/xml\r\n\(fields)"
        return [.readRequest, .send("\(head)Content-Length: \(text.utf8.count)\r\n\r\n\(text)")]
      }
      func every(_ steps: [ScriptedPeer.Step]) -> [ScriptedPeer.Step] {
        Array(repeating: steps, count: 40).flatMap { $0 }
      }
      func error(_ code: String) -> String {
        "<Error><Code>\(code)</Code><Message>\(plants.key) with \(plants.token) is not good</Message></Error>"
      }
      switch outcome {
      case .success: return every(answer("200 OK", "<ListBucketResult/>", "ETag: \"x\"\r\n"))
      case .refused: return every(answer("403 No", error("AccessDenied")))
      case .expired: return every(answer("400 No", error("ExpiredToken")))
      case .failure: return every(answer("500 Oops", error("InternalError")))
      }
    }

    /// The command lines of every process that this test started.
    func commandLines() throws -> Data {
      var found = Data()
      for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") where Int(name) != nil {
        guard let line = FileManager.default.contents(atPath: "/proc/\(name)/cmdline") else { continue }
        if line.range(of: Data(scratch.path.utf8)) != nil { found += line }
      }
      try #require(found.range(of: Data("push".utf8)) != nil)
      return found
    }
  }
}

/// Secrets that occur nowhere else, and the files that contain them.
struct Plants {
  let token = Self.secret("token")
  let password = Self.secret("password")
  let key = Self.secret("key")
  let cookie = Self.secret("cookie")
  let proxyPassword = Self.secret("proxy")
  private let scratch: Scratch

  init(in scratch: Scratch) throws {
    self.scratch = scratch
    try scratch.folder("secrets")
  }

  private static func secret(_ name: String) -> String { "\(name)-\(UInt64.random(in: 0...UInt64.max))" }

  func path(_ name: String) -> String { scratch.path("secrets/\(name)") }

  func write(proxyPort: Int) throws {
    for (name, text) in [
      ("token", token), ("netrc", "machine media.example login me password \(password)"),
      ("fields", "x-api-key: \(key)\nCookie: session=\(cookie)"),
      ("proxy", "http://me:\(proxyPassword)@127.0.0.1:\(proxyPort)"),
    ] {
      try text.write(toFile: path(name), atomically: true, encoding: .utf8)
    }
  }

  /// Searches every file of the scratch folder (journals, outputs, everything), except those that contain the secrets.
  func expectNoTrace() throws {
    let names = try FileManager.default.subpathsOfDirectory(atPath: scratch.path)
    let searched = names.filter { !$0.hasPrefix("secrets") && !$0.hasSuffix(".jpg") }
    #expect(searched.contains { $0.hasPrefix("errors") })
    for name in searched {
      if let data = FileManager.default.contents(atPath: scratch.path(name)) { expectNone(in: data, name) }
    }
  }

  func expectNone(in data: Data, _ place: String) {
    for secret in [token, password, key, cookie, proxyPassword] {
      let forms = [
        secret, base64("me:" + secret), secret.addingPercentEncoding(withAllowedCharacters: .alphanumerics)!,
      ]
      for form in forms where data.range(of: Data(form.utf8)) != nil {
        Issue.record("\(secret.prefix { $0 != "-" }) is in \(place)")
      }
    }
  }
}

func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }
