import BlobClient
import BlobHTTP
import BlobServer
import BlobTesting
import Blobs
import Platform
import TestSupport
import Testing

/// HTTPS with certificates that the openssl command creates during the test.
struct TLSTests {
  private let identity: TestIdentity
  private let server: TestServer

  init() throws {
    identity = try TestIdentity()
    server = try TestServer { [identity] in
      $0.tls = identity.files
      $0.maxSize = 20 << 20
    }
  }

  private func send(
    _ method: String, _ path: String, _ headers: HTTPHeaders = [:], body: PatternSource? = nil
  ) async throws -> HTTPResponse {
    try await Client(server, identity).send(method, path, headers, body: body)
  }

  private struct Client: Sendable {
    let url: HTTPURL
    let transport: SocketTransport

    init(_ server: TestServer, _ identity: TestIdentity) throws {
      url = try #require(HTTPURL(server.server.url))
      transport = SocketTransport(.init(connections: 8, caFile: identity.files.certificate.description))
    }

    func send(
      _ method: String, _ path: String, _ headers: HTTPHeaders = [:], body: PatternSource? = nil
    ) async throws -> HTTPResponse {
      let url = try #require(url.resolve(path))
      return try await transport.send(HTTPRequest(method, url, headers), body: body.map { BlobSlice($0) }, Exchange())
    }
  }

  /// A pipe in the place of a file must not hold the start, which would wait for somebody who writes into it.
  @Test(arguments: [true, false]) func aPipeIsNotWaitedFor(_ isOwn: Bool) throws {
    let folder = try TestFolder()
    let path = folder.path.appending("tls.pem")
    #expect(path.withCString { mkfifo($0, 0o600) } == 0)
    let start = Background { () -> String in
      do throws(ServerError) {
        if isOwn { return try SelfSignedCertificate(at: path, names: ["localhost"]).fingerprint }
        var options = ServerOptions(folder: folder.path, port: 0)
        options.tls = TLSFiles(certificate: path, key: path)
        return try Server(options).url
      } catch {
        return error.message
      }
    }
    let end = start.value(within: .seconds(10))
    if isOwn {
      #expect(end?.wholeMatch(of: /([0-9A-F]{2}:){31}[0-9A-F]{2}/) != nil, "\(end ?? "it waits")")
    } else {
      #expect(end?.contains("no regular file") == true, "\(end ?? "it waits")")
    }
    var status = stat()
    #expect(path.withCString { stat($0, &status) } == 0 && (status.st_mode & S_IFMT == S_IFREG) == isOwn)
    // A thread that waits nevertheless is released.
    let writer = path.withCString { open($0, O_WRONLY | O_NONBLOCK) }
    if writer >= 0 { close(writer) }
  }

  @Test func bytesArriveAndComeBack() async throws {
    #expect(server.server.url == "https://127.0.0.1:\(server.server.port)/")
    for length: Int64 in [0, 1, 100_000, 9 << 20] {
      let pattern = PatternSource(length: length)
      #expect(try await send("PUT", "/of%20\(length)", body: pattern).status == 201)
      #expect(server.folder.read(BytePath("of \(length)")) == pattern.bytes(count: Int(length)))
    }
    let range = try await send("GET", "/of%20\(9 << 20)", ["Range": "bytes=1000000-1500000"])
    #expect(range.status == 206)
    #expect(range.body == PatternSource(length: 9 << 20).bytes(at: 1_000_000, count: 500_001))
  }

  @Test func interimResponsesReportTheURLAndTheOffsets() async throws {
    let client = try Client(server, identity)
    let heads = Monitor<[HTTPHead]>([])
    var on = Exchange()
    on.interim = { head in heads.update { $0.append(head) } }
    let pattern = PatternSource(length: 8 << 20, knowsLength: false)
    let answer = try await client.transport.send(
      HTTPRequest(
        "POST", try #require(client.url.resolve("/film")),
        [
          "Upload-Draft-Interop-Version": "8", "Upload-Complete": "?1", "Connection": "Upload-Interim",
          "Upload-Interim": "?1",
        ]), body: BlobSlice(pattern), on)
    #expect(answer.status == 201 && answer.headers["Upload-Complete"] == "?1")
    let told = heads.update { $0 }
    #expect(told.allSatisfy { $0.status == 104 && $0.headers["Upload-Draft-Interop-Version"] == "8" })
    #expect(told.first?.headers["Location"]?.hasPrefix(".fullbore-upload/") == true)
    let offsets = told.dropFirst().compactMap { $0.headers["Upload-Offset"].flatMap { Int($0) } }
    #expect(!offsets.isEmpty && offsets == offsets.sorted() && offsets.last! <= 8 << 20)
    #expect(server.folder.read("film") == pattern.bytes(count: 8 << 20))
  }

  @Test func refusalsAreHeard() async throws {
    let early = try await send("PUT", "/x", body: PatternSource(length: 30 << 20))
    #expect(early.status == 413)
    let late = try await send("PUT", "/x", body: PatternSource(length: 30 << 20, knowsLength: false))
    #expect(late.status == 413)
    #expect(String(decoding: late.body, as: UTF8.self).contains("\(20 << 20) bytes at most"))
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func manyUploadsAtOnceArrive() async throws {
    let client = try Client(server, identity)
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<24 {
        group.addTask {
          try await client.send("PUT", "/\(number)", body: PatternSource(length: 300_000 + Int64(number))).status
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == [Int](repeating: 201, count: 24))
    for number in 0..<24 {
      #expect(server.folder.read(BytePath("\(number)"))?.count == 300_000 + number)
    }
  }

  @Test func aConnectionWithoutTLSIsClosed() throws {
    let plain = try server.client()
    try plain.head("GET", "/")
    #expect(throws: (any Error).self) { try plain.answer() }
    let silent = try TestServer {
      $0.tls = identity.files
      $0.headTimeout = .seconds(1)
    }
    let begin = ContinuousClock.now
    #expect(try silent.client().isClosedByServer())
    #expect(ContinuousClock.now - begin < .seconds(15))
  }

  /// RSA without forward secrecy, ciphers without authenticated encryption, SHA-1, and old versions.
  @Test(
    arguments: [
      ["-tls1_2", "-cipher", "AES128-SHA"], ["-tls1_2", "-cipher", "AES256-GCM-SHA384"],
      ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA"], ["-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384"],
      ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"], ["-tls1_2", "-sigalgs", "RSA+SHA1"],
      ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
    ])
  func weakTLSVersionsAndCiphersAreRefused(_ arguments: [String]) throws {
    let rsa = try Self.rsa.get()
    let server = try TestServer { $0.tls = rsa.files }
    #expect(try !rsa.connects(to: server, arguments))
  }

  /// Shared, because creating an RSA key takes long.
  private static let rsa = Result { try TestIdentity(.rsa) }

  @Test func strongTLSVersionsAndCiphersAreAccepted() throws {
    let rsa = try Self.rsa.get()
    let server = try TestServer { $0.tls = rsa.files }
    #expect(try rsa.connects(to: server, ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]))
    #expect(try rsa.connects(to: server, ["-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305"]))
    #expect(try rsa.connects(to: server, ["-tls1_3"]))
  }

  @Test func aServerOfOpenConnectionsStops() throws {
    let clients = try (0..<10).map { _ in try server.client() }
    server.server.stop(grace: .zero)
    #expect(clients.allSatisfy { $0.isClosedByServer() })
  }

  @Test func theErrorNamesAnInvalidCertificateOrKey() throws {
    let other = try TestIdentity()
    let folder = identity.folder
    folder.write("text", Array("no PEM at all\n".utf8))
    folder.write("empty", [])
    let text = folder.path.appending("text")
    let cases: [(BytePath, BytePath, String)] = [
      (identity.files.certificate, other.files.key, "do not match"),
      (identity.files.certificate, text, "the key \(text) cannot be used"),
      (text, identity.files.key, "the certificate \(text) cannot be used"),
      (identity.files.key, identity.files.key, "the certificate \(identity.files.key) cannot be used"),
      (identity.files.certificate, "/no/such/key", "No such file"),
      (identity.files.certificate, folder.path, "it is no regular file"),
      (identity.files.certificate, folder.path.appending("empty"), "0 bytes"),
      (identity.files.certificate, try identity.encryptedKey(), "cannot be used"),
    ]
    for (certificate, key, wanted) in cases {
      let error = #expect(throws: ServerError.self) {
        try TestServer { $0.tls = TLSFiles(certificate: certificate, key: key) }
      }
      #expect(error?.message.contains(wanted) == true, "\(error as Any)")
    }
  }
}

/// A key and a self-signed certificate for 127.0.0.1.
final class TestIdentity: Sendable {
  let folder: TestFolder
  let files: TLSFiles

  enum Kind { case ec, rsa }

  init(_ kind: Kind = .ec) throws {
    folder = try TestFolder()
    files = TLSFiles(certificate: folder.path.appending("cert.pem"), key: folder.path.appending("key.pem"))
    let key = kind == .ec ? ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] : ["rsa:2048"]
    let status = try Self.run(
      ["req", "-x509", "-newkey"] + key + [
        "-nodes", "-days", "2", "-subj", "/CN=fullbore test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
        "\(files.key)", "-out", "\(files.certificate)",
      ])
    try #require(status == 0, "openssl makes no certificate")
  }

  /// Whether `openssl s_client` completes a handshake with the server with these options.
  func connects(to server: TestServer, _ options: [String]) throws -> Bool {
    let place = "127.0.0.1:\(server.server.port)"
    return try Self.run(["s_client", "-connect", place, "-CAfile", "\(files.certificate)"] + options) == 0
  }

  func encryptedKey() throws -> BytePath {
    let path = folder.path.appending("encrypted.pem")
    let status = try Self.run(
      ["ec", "-in", "\(files.key)", "-aes128", "-passout", "pass:secret", "-out", "\(path)"])
    try #require(status == 0, "openssl encrypts no key")
    return path
  }

  private static func run(_ arguments: [String]) throws -> Int32 {
    var words = (["openssl"] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var process = pid_t()
    var status: Int32 = -1
    try #require(posix_spawnp(&process, "openssl", &actions, nil, &words, environ) == 0, "openssl is not installed")
    try #require(waitpid(process, &status, 0) == process)
    return status
  }
}
