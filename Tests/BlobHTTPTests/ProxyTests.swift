import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

/// Requests through a proxy: their host names cannot be reached otherwise.
@Suite struct ProxyTests {
  func transport(_ proxy: String, caFile: String? = nil) -> SocketTransport {
    SocketTransport(.init(caFile: caFile, connect: .seconds(5), proxy: Proxy(proxy)!, environment: [:]))
  }

  @Test(arguments: ["http", "socks5h"]) func aFileGoesThroughAProxy(_ scheme: String) async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port)
    let transport = transport("\(scheme)://127.0.0.1:\(proxy.port)")
    let source = PatternSource(length: 300_000, seed: 4)
    for _ in 0..<2 {
      let url = HTTPURL("http://media.example/in/a")!
      #expect(try await transport.put(url, source).status == 200)
    }
    #expect(proxy.seen.targets == [scheme == "http" ? "media.example" : "media.example:80"])
    #expect(peer.heads.hasPrefix("PUT /in/a HTTP/1.1\r\n"))
    #expect(!peer.heads.lowercased().contains("proxy"))
    #expect(peer.body().prefix(300_000) == source.bytes(count: 300_000)[...])
  }

  @Test func anAddressNeedsNoNameToBeLookedUp() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port)
    let url = HTTPURL("http://192.0.2.7:8080/a")!
    #expect(try await transport("socks5://127.0.0.1:\(proxy.port)").get(url).status == 200)
    #expect(proxy.seen.targets == ["192.0.2.7:8080"])
  }

  /// A tunnel: the proxy sees neither the credentials nor the file, and the certificate is checked for the server's
  /// name.
  @Test(arguments: ["http", "socks5h"]) func httpsIsATunnel(_ scheme: String) async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "DNS:media.example"))
    let proxy = ProxyPeer(to: server.port)
    let transport = transport("\(scheme)://127.0.0.1:\(proxy.port)", caFile: authority.path)
    let request = HTTPRequest("GET", HTTPURL("https://media.example/a")!, ["Authorization": "Bearer secret"])
    #expect(try await transport.send(request, body: nil, Exchange()).status == 200)
    #expect(proxy.seen.targets == ["media.example:443"])
    #expect(!proxy.seen.heads.joined().contains("secret"))

    let error = await failure { () async throws(TransportError) in
      try await transport.get(HTTPURL("https://other.example/a")!)
    }
    #expect(error.code == .tls && error.message.contains("is not for 'other.example'"), "\(error)")
  }

  /// SOCKS4 sends an address to the proxy, and SOCKS4a a name; both send a user without a password.
  @Test(arguments: ["socks4", "socks4a"]) func socks4CarriesARequest(_ scheme: String) async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port, .wants(user: "camera", password: ""))
    let host = scheme == "socks4" ? "192.0.2.7" : "media.example"
    let url = HTTPURL("http://\(host)/a")!
    let place = "127.0.0.1:\(proxy.port)"
    let source = PatternSource(length: 300_000, seed: 4)
    #expect(try await transport("\(scheme)://camera@\(place)").put(url, source).status == 200)
    #expect(proxy.seen.targets == ["\(host):80"])
    #expect(peer.body().prefix(300_000) == source.bytes(count: 300_000)[...])
    let error = await failure { () async throws(TransportError) in
      try await transport("\(scheme)://stranger@\(place)").get(url)
    }
    #expect([.proxy, .connect].contains(error.code), "\(error)")
    #expect(error.message.contains("the proxy \(scheme)://\(place) does not connect us to \(host):80"), "\(error)")
  }

  @Test func socks4IsATunnelToo() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "DNS:media.example"))
    let proxy = ProxyPeer(to: server.port)
    let transport = transport("socks4a://127.0.0.1:\(proxy.port)", caFile: authority.path)
    #expect(try await transport.get(HTTPURL("https://media.example/a")!).status == 200)
    #expect(proxy.seen.targets == ["media.example:443"])
  }

  /// TLS to the proxy, and a plain request through it.
  @Test func aProxyIsSpokenToOverTLS() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port, .wants(user: "me", password: "secret"))
    let certificate = try Certificate()
    let wrapped = TLSWrapped(certificate, to: proxy.port)
    let source = PatternSource(length: 300_000, seed: 4)
    let transport = transport("https://me:secret@127.0.0.1:\(wrapped.port)", caFile: certificate.path)
    #expect(try await transport.put(HTTPURL("http://media.example/a")!, source).status == 200)
    #expect(proxy.seen.targets == ["media.example"])
    #expect(!peer.heads.lowercased().contains("proxy"))
    #expect(peer.body().prefix(300_000) == source.bytes(count: 300_000)[...])
  }

  /// TLS to the server within TLS to the proxy.
  @Test func aTunnelLeadsThroughAProxyOverTLS() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "DNS:media.example"))
    let proxy = ProxyPeer(to: server.port)
    let wrapped = TLSWrapped(try authority.certificate(for: "IP:127.0.0.1"), to: proxy.port)
    let transport = transport("https://127.0.0.1:\(wrapped.port)", caFile: authority.path)
    let request = HTTPRequest("GET", HTTPURL("https://media.example/a")!, ["Authorization": "Bearer secret"])
    #expect(try await transport.send(request, body: nil, Exchange()).status == 200)
    #expect(proxy.seen.targets == ["media.example:443"])
    #expect(!proxy.seen.heads.joined().contains("secret"))
  }

  @Test func theServersCertificateIsNotTakenForTheProxys() async throws {
    let authority = try Authority()
    let server = OpenSSLServer(try authority.certificate(for: "DNS:media.example"))
    let proxy = ProxyPeer(to: server.port)
    let wrapped = TLSWrapped(try authority.certificate(for: "IP:127.0.0.1"), to: proxy.port)
    let transport = transport("https://127.0.0.1:\(wrapped.port)", caFile: authority.path)
    let error = await failure { () async throws(TransportError) in
      try await transport.get(HTTPURL("https://other.example/a")!)
    }
    #expect(error.code == .tls && error.message.contains("of other.example:443 is not for 'other.example'"), "\(error)")
  }

  /// Nothing is sent to a proxy whose certificate is not valid.
  @Test func theErrorNamesTheFaultOfTheProxysCertificate() async throws {
    let authority = try Authority()
    let peer = ProxyPeer(to: 1)
    for (certificate, caFile, code, words) in [
      (try Certificate(), nil, TransportError.Code.untrusted, "is self-signed, and nothing here vouches for it"),
      (try authority.certificate(for: "DNS:proxy.example"), authority.path, .tls, "is not for '127.0.0.1'"),
      (try authority.certificate(for: "IP:127.0.0.1", days: -1), authority.path, .tls, "has expired"),
    ] {
      let wrapped = TLSWrapped(certificate, to: peer.port)
      let place = "https://127.0.0.1:\(wrapped.port)"
      for url in ["http://media.example/a", "https://media.example/a"] {
        let error = await failure { () async throws(TransportError) in
          try await transport(place, caFile: caFile).get(HTTPURL(url)!)
        }
        #expect(error.code == code && error.message.contains("the proxy \(place)"), "\(error)")
        #expect(error.message.contains(words), "\(error)")
      }
    }
    #expect(peer.seen.heads.isEmpty)
  }

  @Test func theErrorNamesAProxyThatDoesNotSpeakTLS() async throws {
    let proxy = ProxyPeer(to: 1)
    let place = "https://127.0.0.1:\(proxy.port)"
    let error = await failure { () async throws(TransportError) in
      try await transport(place).get(HTTPURL("http://media.example/a")!)
    }
    #expect([.tls, .broken, .connect].contains(error.code) && error.message.contains("proxy \(place)"), "\(error)")
  }

  @Test(arguments: ["http", "socks5h"]) func credentialsGoToTheProxyAlone(_ scheme: String) async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port, .wants(user: "me@home", password: "p:ss/word"))
    let url = HTTPURL("http://media.example/a")!
    let place = "127.0.0.1:\(proxy.port)"
    #expect(try await transport("\(scheme)://me%40home:p%3Ass%2Fword@\(place)").get(url).status == 200)
    #expect(!peer.heads.lowercased().contains("proxy"))

    for credentials in ["", "me%40home:wrong-word@"] {
      let transport = transport("\(scheme)://\(credentials)\(place)")
      if scheme == "http" {
        #expect(try await transport.get(url).status == 407)
      } else {
        let error = await failure { () async throws(TransportError) in try await transport.get(url) }
        #expect(error.code == .proxy && error.message.contains("proxy socks5h://\(place)"), "\(error)")
        #expect(!error.message.contains("wrong-word"))
      }
      let error = await failure { () async throws(TransportError) in
        try await transport.get(HTTPURL("https://media.example/a")!)
      }
      #expect(error.code == .proxy && error.message.contains("proxy \(scheme)://\(place)"), "\(error)")
      #expect(!error.message.contains("wrong-word"))
    }
  }

  @Test func theErrorNamesTheStatusOfTheProxy() async throws {
    let nobody = Loopback.listen()
    Loopback.close(nobody.descriptor)
    let url = HTTPURL("https://media.example/a")!
    for (mode, status, code) in [
      (ProxyPeer.Mode.refuses(status: 403), "(403)", TransportError.Code.proxy), (.willing, "(502)", .connect),
    ] {
      let proxy = ProxyPeer(to: nobody.port, mode)
      let error = await failure { () async throws(TransportError) in
        try await transport("http://127.0.0.1:\(proxy.port)").get(url)
      }
      #expect(error.code == code && error.message.contains("connect us to media.example:443 \(status)"), "\(error)")
      let socks = await failure { () async throws(TransportError) in
        try await transport("socks5h://127.0.0.1:\(proxy.port)").get(url)
      }
      #expect(socks.code == code && socks.message.contains("does not connect us to media.example:443"), "\(socks)")
    }
  }

  @Test(arguments: ["http", "socks5h"]) func aProxyThatIsNotThereIsNamed(_ scheme: String) async throws {
    let nobody = Loopback.listen()
    Loopback.close(nobody.descriptor)
    let error = await failure { () async throws(TransportError) in
      try await transport("\(scheme)://127.0.0.1:\(nobody.port)").get(HTTPURL("http://media.example/a")!)
    }
    #expect(error.code == .connect)
    #expect(error.message.contains("connection refused (the proxy \(scheme)://127.0.0.1:\(nobody.port))"), "\(error)")
  }
}

/// The choice of the proxy by URL and environment.
@Suite struct ProxyRuleTests {
  private func choice(
    _ url: String, _ environment: [String: String] = [:], given: String? = nil
  ) throws(TransportError) -> String? {
    try ProxyRules(given.map { Proxy($0)! }, environment: environment).proxy(for: HTTPURL(url)!)?.description
  }

  @Test func eachSchemeHasItsVariable() throws {
    let all = ["http_proxy": "http://a:1", "https_proxy": "b:2", "all_proxy": "socks5://c"]
    #expect(try choice("http://x/", all) == "http://a:1")
    #expect(try choice("https://x/", all) == "http://b:2")
    #expect(try choice("https://x/", ["HTTPS_PROXY": "b:2"]) == "http://b:2")
    #expect(try choice("http://x/", ["HTTP_PROXY": "b:2"]) == nil)
    #expect(try choice("http://x/", ["ALL_PROXY": "socks5://c"]) == "socks5://c:1080")
    #expect(try choice("http://x/", ["http_proxy": ""]) == nil)
    #expect(try choice("http://x/", all, given: "socks5h://d:4") == "socks5h://d:4")
  }

  @Test(arguments: [
    ("*", "a.example", true), ("*,b", "a.example", false), ("example", "a.example", true),
    (".example", "a.example", true), (".example", "example", true), ("ample", "a.example", false),
    ("b, A.Example.", "a.example", true), ("a.example", "a.example.", true), ("", "a.example", false),
    ("10.0.0.0/8", "10.1.2.3", true), ("10.0.0.0/8", "11.1.2.3", false), ("10.1.2.3", "10.1.2.3", true),
    ("10.1.2.0/23", "10.1.3.255", true), ("10.1.2.0/23", "10.1.4.0", false), ("10.0.0.0/33", "10.0.0.0", false),
    ("fd00::/8", "[fd12::1]", true), ("fd00::/8", "[fe80::1]", false), ("[fd12::1]", "[fd12::1]", true),
    ("0.0.0.0/0", "a.example", false), ("2.3", "10.1.2.3", false),
  ])
  func noProxyExempts(_ list: String, _ host: String, _ isExempt: Bool) throws {
    #expect(try (choice("http://\(host)/", ["no_proxy": list], given: "p:1") == nil) == isExempt)
    #expect(try (choice("http://\(host)/", ["NO_PROXY": list, "all_proxy": "p:1"]) == nil) == isExempt)
  }

  @Test(arguments: [
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "127.1", "[::1]",
    "[::ffff:127.0.0.1]",
  ])
  func thisMachineNeedsNoProxy(_ host: String) throws {
    #expect(try choice("http://\(host):80/", ["http_proxy": "p:1"], given: "p:1") == nil)
  }

  @Test(arguments: ["gopher://p:1", "http://", "http://p:99999", "http://user:secret@p:x/"])
  func aVariableThatIsNoProxyIsNamedAndNotShown(_ text: String) {
    let error = #expect(throws: TransportError.self) { try choice("https://x/", ["https_proxy": text]) }
    #expect(error?.code == .badRequest && error?.message.contains("$https_proxy") == true)
    #expect(error?.message.contains("secret") == false)
  }

  @Test func aProxyIsShownWithoutItsPassword() throws {
    let proxy = try #require(Proxy("SOCKS5://us%20er:se%3Acret@[::1]:9050/"))
    #expect(proxy.user == "us er" && proxy.password == "se:cret" && proxy.hasCredentials)
    #expect("\(proxy)" == "socks5://[::1]:9050")
    #expect(try #require(Proxy("proxy.example")).description == "http://proxy.example:1080")
  }

  /// The bytes arrive so fast that libcurl, which discards them, does not check the time.
  @Test(arguments: [true, false]) func aProxysRefusalWithoutAnEndRunsIntoConnect(_ knowsLength: Bool) async {
    let chunk = "10000\r\n" + String(repeating: "x", count: 0x10000) + "\r\n"
    let flood = [ScriptedPeer.Step](repeating: .send(chunk), count: 40_000)
    let refusal = "HTTP/1.1 407 No\r\nTransfer-Encoding: chunked\r\n\r\n"
    let peer = ScriptedPeer([.readHead, .send(refusal)] + flood)
    let transport = SocketTransport(
      .init(connect: .seconds(1), proxy: Proxy("http://127.0.0.1:\(peer.port)")!, environment: [:]))
    let error = await failure { () async throws(TransportError) in
      let source = PatternSource(length: 1000, knowsLength: knowsLength)
      return try await transport.put(HTTPURL("https://media.example/a")!, source)
    }
    #expect(error.code == .connect && error.message.contains("within 1.0 seconds through the proxy"), "\(error)")
    #expect(peer.seen.steps[0] < 40_000)
  }
}
