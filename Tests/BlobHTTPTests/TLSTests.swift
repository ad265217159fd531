import BlobHTTP
import BlobTesting
import Blobs
import Testing

/// Against the server of the openssl command.
@Suite struct TLSTests {
  private let certificate: Certificate

  init() throws { certificate = try Certificate() }

  @Test func anUnknownCertificateIsRefusedAndSaysWhy() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in try await CurlTransport().get(server.url) }
    #expect(error.code == .tls)
    #expect(error.message.contains("self-signed certificate (127.0.0.1:\(server.port))"), "\(error)")
  }

  @Test func aCertificateOfTheCallersIsAccepted() async throws {
    let server = OpenSSLServer(certificate)
    let transport = CurlTransport(.init(caFile: certificate.path))
    let response = try await transport.get(server.url)
    #expect(response.status == 200)
    #expect(String(decoding: response.body, as: UTF8.self).contains("s_server"))
  }

  @Test func aCertificateForAnotherNameIsRefused() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in
      try await CurlTransport(.init(caFile: certificate.path)).get(HTTPURL("https://localhost:\(server.port)/")!)
    }
    #expect(error.code == .tls, "\(error)")
  }

  @Test func anyCertificateIsAcceptedWhenAskedFor() async throws {
    let server = OpenSSLServer(certificate)
    #expect(try await CurlTransport(.init(verifiesTLS: false)).get(server.url).status == 200)
  }

  @Test func aCertificateFileThatIsNotThereIsNamed() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in
      try await CurlTransport(.init(caFile: "/nowhere/ca.pem")).get(server.url)
    }
    #expect(error.code == .tls && error.message.contains("/nowhere/ca.pem"), "\(error)")
  }

  @Test func aServerWithoutTLSIsNoMatterOfTrust() async throws {
    let peer = ScriptedPeer([.read(5), .send("HTTP/1.1 400 Bad Request\r\n\r\n"), .close])
    let error = await failure { () async throws(TransportError) in
      try await CurlTransport().get(peer.url(scheme: "https"))
    }
    #expect(error.code == .tls || error.code == .broken, "\(error)")
  }

  @Test(arguments: [1, 60_000, 3_000_000])
  func aBodyArrivesWhole(_ size: Int) async throws {
    let server = OpenSSLServer(certificate, answers: false)
    let source = PatternSource(length: Int64(size), seed: 9)
    let (transport, url) = (CurlTransport(.init(caFile: certificate.path)), server.url)
    async let response = transport.put(url, source)
    let received = await server.receive { $0.count >= size && Array($0.suffix(size)) == source.bytes(count: size) }
    #expect(received)
    server.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    #expect(try await response.status == 201)
  }
}

/// A key and a self-signed certificate for 127.0.0.1.
final class Certificate: Sendable {
  private let folder = TemporaryFolder()
  var path: String { folder.path + "/cert.pem" }
  var key: String { folder.path + "/key.pem" }

  init() throws {
    let make = Command([
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
      "-subj", "/CN=fullbore test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", path,
    ])
    try #require(make.wait() == 0, "openssl makes no certificate")
  }
}

/// `openssl s_server`: answers GET with a page of its own, or hands over what it gets and sends what it is given.
final class OpenSSLServer: Sendable {
  let port: Int
  private let command: Command
  var url: HTTPURL { HTTPURL("https://127.0.0.1:\(port)/a")! }

  init(_ certificate: Certificate, answers: Bool = true) {
    let (listener, port) = Loopback.listen()
    Loopback.close(listener)
    self.port = port
    command = Command(
      [
        "openssl", "s_server", "-quiet", "-accept", "127.0.0.1:\(port)", "-cert", certificate.path,
        "-key", certificate.key,
      ] + (answers ? ["-www"] : []))
    // It says nothing when it is ready.
    while true {
      if let socket = Loopback.connect(port: port) {
        Loopback.close(socket)
        return
      }
      pauseThread(milliseconds: 5)
    }
  }

  func send(_ text: String) { command.write(text) }

  /// true once what was received is `enough`; false when the server ended before.
  func receive(_ enough: @escaping @Sendable ([UInt8]) -> Bool) async -> Bool {
    await withCheckedContinuation { done in
      SystemThread.start("tls-peer") { [command] in
        var received: [UInt8] = []
        while !enough(received) {
          let more = readSome(command.output)
          if more.isEmpty { return done.resume(returning: false) }
          received += more
        }
        done.resume(returning: true)
      }
    }
  }
}
