import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

/// TLS with the server of the openssl command.
@Suite struct TLSTests {
  private let certificate: Certificate

  init() throws { certificate = try Certificate() }

  @Test func anUnknownCertificateIsRefusedAndSaysWhy() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in try await SocketTransport().get(server.url) }
    #expect(error.code == .untrusted)
    #expect(
      error.message.hasSuffix(
        "the certificate of 127.0.0.1:\(server.port) is self-signed, and nothing here vouches for it"), "\(error)")
  }

  @Test func aCertificateOfTheCallersIsAccepted() async throws {
    let server = OpenSSLServer(certificate)
    let transport = SocketTransport(.init(caFile: certificate.path))
    let response = try await transport.get(server.url)
    #expect(response.status == 200)
    #expect(String(decoding: response.body, as: UTF8.self).contains("s_server"))
  }

  /// The client prefers the cheapest secure cipher, but also accepts another one of the server.
  @Test(arguments: [
    ([], "TLS_AES_128_GCM_SHA256"), (["-ciphersuites", "TLS_AES_256_GCM_SHA384"], "TLS_AES_256_GCM_SHA384"),
    (["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"], "TLS_CHACHA20_POLY1305_SHA256"),
    (["-no_tls1_3"], "TLSv1.2"),
  ])
  func bytesAreHiddenByWhatBothHave(_ options: [String], _ wanted: String) async throws {
    let server = OpenSSLServer(certificate, options)
    let response = try await SocketTransport(.init(caFile: certificate.path)).get(server.url)
    let page = String(decoding: response.body, as: UTF8.self)
    let line = page.split(separator: "\n").first { $0.contains("Cipher is") }
    #expect(line?.contains(wanted) == true, "\(page)")
  }

  /// Any worker resumes the session, which saves the transfer of the certificate and most of the computation.
  @Test(arguments: [[], ["-no_tls1_3"]]) func theNextConnectionGoesOnWithTheSession(_ options: [String]) async throws {
    let server = OpenSSLServer(certificate, options)
    let transport = SocketTransport(.init(caFile: certificate.path))
    for begin in ["New, TLS", "Reused, TLS", "Reused, TLS"] {
      let page = String(decoding: try await transport.get(server.url).body, as: UTF8.self)
      #expect(page.contains(begin), "\(page)")
    }
  }

  @Test(arguments: ["localhost", "LOCALHOST"]) func hostNamesMatchACertificateInAnyCase(_ host: String)
    async throws
  {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "DNS:localhost"))
    let url = HTTPURL("https://\(host):\(server.port)/")!
    #expect(try await SocketTransport(.init(caFile: authority.path)).get(url).status == 200)
  }

  /// A wildcard matches exactly one whole label.
  @Test func aCertificateWithAStarIsForItsLabelAlone() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "DNS:*.media.localhost,DNS:w*.other.localhost"))
    let transport = SocketTransport(.init(caFile: authority.path))
    #expect(try await transport.get(HTTPURL("https://www.media.localhost:\(server.port)/")!).status == 200)
    for name in ["media.localhost", "a.b.media.localhost", "www.other.localhost"] {
      let error = await failure { () async throws(TransportError) in
        try await transport.get(HTTPURL("https://\(name):\(server.port)/")!)
      }
      #expect(error.code == .tls && error.message.contains("is not for '\(name)'"), "\(error)")
    }
  }

  @Test func aCertificateForAnotherNameIsRefused() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport(.init(caFile: certificate.path)).get(HTTPURL("https://localhost:\(server.port)/")!)
    }
    #expect(error.code == .tls && error.message.contains("is not for 'localhost'"), "\(error)")
  }

  /// The subject's common name counts only if the certificate has no other name for a host. RFC 6125 §6.4.4.
  @Test(
    arguments: [
      (nil, "/CN=localhost", true), ("email:a@localhost", "/CN=localhost", true),
      ("IP:127.0.0.1", "/CN=localhost", false), ("DNS:other.example", "/CN=localhost", false),
      ("email:a@localhost,IP:127.0.0.1", "/CN=localhost", false), (nil, "/CN=localhost/CN=other.example", false),
      (nil, "/CN=other.example/CN=localhost", false), (nil, "/O=localhost", false),
    ] as [(String?, String, Bool)])
  func aCommonNameCountsWhereThereIsNoOtherName(_ names: String?, _ subject: String, _ isFor: Bool) async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: names, subject: subject))
    let transport = SocketTransport(.init(caFile: authority.path))
    let url = HTTPURL("https://localhost:\(server.port)/")!
    if isFor {
      #expect(try await transport.get(url).status == 200)
    } else {
      let error = await failure { () async throws(TransportError) in try await transport.get(url) }
      #expect(error.code == .tls && error.message.contains("is not for 'localhost'"), "\(error)")
    }
  }

  @Test func aCertificateOfATrustedAuthorityIsAccepted() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "IP:127.0.0.1"))
    #expect(try await SocketTransport(.init(caFile: authority.path)).get(server.url).status == 200)
  }

  @Test func aCertificateOfAnotherAuthorityIsRefused() async throws {
    let server = OpenSSLServer(try Authority().certificate(for: "IP:127.0.0.1"))
    let other = try Authority()
    for (caFile, words) in [(nil, "nothing here"), (other.path, "nothing in \(other.path)")] as [(String?, String)] {
      let error = await failure { () async throws(TransportError) in
        try await SocketTransport(.init(caFile: caFile)).get(server.url)
      }
      #expect(error.code == .untrusted, "\(error)")
      #expect(error.message.hasSuffix("comes from an authority that \(words) vouches for"), "\(error)")
    }
  }

  @Test func aCertificateThatHasExpiredIsRefused() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "IP:127.0.0.1", days: -1))
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport(.init(caFile: authority.path)).get(server.url)
    }
    #expect(error.code == .tls && error.message.contains("has expired"), "\(error)")
  }

  @Test func aCertificateForClientsIsSaidToBeNoneForServers() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "IP:127.0.0.1", usage: "clientAuth"))
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport(.init(caFile: authority.path)).get(server.url)
    }
    #expect(error.code == .tls && error.message.contains("is not made for servers"), "\(error)")
  }

  @Test func aServerOfAnOldVersionIsSaidToBeOne() async throws {
    let server = OpenSSLServer(certificate, ["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"])
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport(.init(caFile: certificate.path)).get(server.url)
    }
    #expect(error.code == .tls && error.message.contains("which are 1.2 and 1.3"), "\(error)")
  }

  @Test func aFileThatIsNoCertificateIsNamed() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport(.init(caFile: certificate.key)).get(server.url)
    }
    #expect(error.code == .tls && error.message.contains(certificate.key), "\(error)")
  }

  @Test func anyCertificateIsAcceptedWhenAskedFor() async throws {
    let server = OpenSSLServer(certificate)
    #expect(try await SocketTransport(.init(verifiesTLS: false)).get(server.url).status == 200)
  }

  @Test func aCertificateFileThatIsNotThereIsNamed() async throws {
    let server = OpenSSLServer(certificate)
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport(.init(caFile: "/nowhere/ca.pem")).get(server.url)
    }
    #expect(error.code == .tls && error.message.contains("/nowhere/ca.pem"), "\(error)")
  }

  @Test func aServerWithoutTLSIsNoMatterOfTrust() async throws {
    let peer = ScriptedPeer([.read(5), .send("HTTP/1.1 400 Bad Request\r\n\r\n"), .close])
    let error = await failure { () async throws(TransportError) in
      try await SocketTransport().get(peer.url(scheme: "https"))
    }
    #expect(error.code == .tls && error.message.contains("does not speak TLS"), "\(error)")
  }

  @Test(arguments: [1, 60_000, 3_000_000])
  func aBodyArrivesWhole(_ size: Int) async throws {
    let server = OpenSSLServer(certificate, answers: false)
    let source = PatternSource(length: Int64(size), seed: 9)
    let (transport, url) = (SocketTransport(.init(caFile: certificate.path)), server.url)
    async let response = transport.put(url, source)
    let received = await server.receive { $0.count >= size && Array($0.suffix(size)) == source.bytes(count: size) }
    #expect(received)
    server.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    #expect(try await response.status == 201)
  }
}
