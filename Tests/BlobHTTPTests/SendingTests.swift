import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@Suite struct SendingTests {
  let transport = SocketTransport()

  @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 3_000_001])
  func aBodyOfKnownLengthArrivesWhole(_ size: Int) async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let source = PatternSource(length: Int64(size), seed: 7)
    let sent = Tally()
    let response = try await transport.send(
      HTTPRequest("PUT", peer.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
    #expect(response.status == 200)
    #expect(peer.heads.contains("PUT /a HTTP/1.1\r\n"))
    #expect(peer.heads.contains("\r\nContent-Length: \(size)\r\n"))
    #expect(peer.body() == source.bytes(count: size))
    #expect(sent.value == size)
  }

  @Test(arguments: [0, 1, 200_000])
  func aBodyOfUnknownLengthGoesInChunks(_ size: Int) async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let source = PatternSource(length: Int64(size), knowsLength: false)
    let sent = Tally()
    let response = try await transport.send(
      HTTPRequest("POST", peer.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
    #expect(response.status == 200)
    #expect(peer.heads.contains("\r\nTransfer-Encoding: chunked\r\n"))
    #expect(!peer.heads.contains("Content-Length"))
    #expect(peer.seen.received[0].suffix(5) == Array("0\r\n\r\n".utf8)[...])
    #expect(sent.value == size)
  }

  /// Repeatedly, and with a request without trailers in between.
  @Test(arguments: [0, 1, 200_000]) func fieldsFollowABody(_ size: Int) async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer(), .readRequest, answer(), .hold])
    let transport = SocketTransport(.init(connections: 1))
    let source = PatternSource(length: Int64(size))
    for number in 1...3 {
      var on = Exchange()
      if number != 2 { on.trailers = { ["Upload-Checksum": "sha1 number\(number)=="] } }
      let request = HTTPRequest("PATCH", peer.url(), ["Trailer": "Upload-Checksum"])
      #expect(try await transport.send(request, body: BlobSlice(source), on).status == 200)
    }
    let seen = String(decoding: peer.seen.received[0].filter { $0 < 128 }, as: UTF8.self)
    #expect(seen.contains("\r\n0\r\nUpload-Checksum: sha1 number1==\r\n\r\n"))
    #expect(seen.hasSuffix("\r\n0\r\nUpload-Checksum: sha1 number3==\r\n\r\n"))
    #expect(peer.seen.heads.map { $0.contains("Transfer-Encoding: chunked") } == [true, false, true])
  }

  /// A URL may be given with any characters. The request contains only ASCII. RFC 3987 §3.1.
  @Test func aPlaceOutsideASCIIIsEncoded() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let url = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/Fotos/\u{E4}%20b?q=\u{FC}"))
    #expect(try await transport.get(url).status == 200)
    #expect(peer.heads.hasPrefix("GET /Fotos/%C3%A4%20b?q=%C3%BC HTTP/1.1\r\n"))
  }

  /// Before and after heads of usual length, over the same connection.
  @Test(arguments: [0, 10, 100_000]) func headsOfAnyLengthAreSent(_ size: Int) async throws {
    let lengths = [10, 8000, 200_000, 10, 9000]
    let peer = ScriptedPeer(lengths.flatMap { _ in [.readRequest, answer()] })
    for length in lengths {
      let request = HTTPRequest("PUT", peer.url(), ["X-Long": String(repeating: "a", count: length)])
      let source = PatternSource(length: Int64(size))
      #expect(try await transport.send(request, body: BlobSlice(source), Exchange()).status == 200)
    }
    #expect(peer.seen.received.count == 1)
    #expect(
      zip(peer.seen.heads, lengths).allSatisfy { $0.contains("X-Long: \(String(repeating: "a", count: $1))\r\n") })
    let received = peer.bodies(lengths.map { _ in size })
    #expect(
      received == Array(repeating: PatternSource(length: Int64(size)).bytes(count: size), count: 5).flatMap { $0 })
  }

  @Test func aSliceSendsItsRangeOnly() async throws {
    let peer = ScriptedPeer([.readRequest, answer("204 No Content")])
    let source = PatternSource(length: 1 << 30)
    let slice = BlobSlice(source, start: 999_999, length: 100_000)
    let response = try await transport.send(HTTPRequest("PATCH", peer.url()), body: slice, Exchange())
    #expect(response.status == 204)
    #expect(peer.body() == source.bytes(at: 999_999, count: 100_000))
  }

  @Test func fiveGibibytesAreAnnouncedInFull() async throws {
    let peer = ScriptedPeer([.readHead, .hold])
    let task = Task { try await transport.put(peer.url(), PatternSource(length: 5 << 30)) }
    await peer.wait { $0.steps.first == 1 }
    task.cancel()
    _ = await task.result
    #expect(peer.heads.contains("\r\nContent-Length: 5368709120\r\n"))
  }

  @Test(arguments: ["PUT", "POST", "PATCH"])
  func aMethodThatMayHaveABodySaysThatItHasNone(_ method: String) async throws {
    let peer = ScriptedPeer([.readRequest, answer("201 Created", "", "Location: /u/1\r\n")])
    let response = try await transport.get(peer.url(), method)
    #expect(response.headers["location"] == "/u/1")
    #expect(peer.heads.hasPrefix("\(method) /a HTTP/1.1\r\n"))
    #expect(peer.heads.contains("\r\nContent-Length: 0\r\n"))
  }

  @Test func nothingIsSentThatWasNotAskedFor() async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer(), .readRequest, answer()])
    _ = try await transport.put(peer.url(), PatternSource(length: 10))
    _ = try await transport.put(peer.url(), PatternSource(length: 100_000))
    _ = try await transport.get(peer.url())
    for name in ["Expect", "Content-Type", "Accept-Encoding", "Authorization", "Cookie"] {
      #expect(!peer.heads.contains("\r\n\(name):"))
    }
    #expect(peer.heads.contains("\r\nUser-Agent: fullbore/"))
  }

  @Test func headersGoAsGivenEvenWhenEmpty() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    var headers: HTTPHeaders = ["Content-Type": "image/heic", "X-Empty": "", "Upload-Offset": "0"]
    headers.add("X-Twice", "1")
    headers.add("X-Twice", "2, with a ; semicolon")
    let slice = BlobSlice(PatternSource(length: 5))
    _ = try await transport.send(HTTPRequest("POST", peer.url("/a?k=v"), headers), body: slice, Exchange())
    let text = peer.heads
    #expect(text.hasPrefix("POST /a?k=v HTTP/1.1\r\n"))
    for line in [
      "Content-Type: image/heic", "X-Empty:", "Upload-Offset: 0", "X-Twice: 1", "X-Twice: 2, with a ; semicolon",
    ] {
      #expect(text.contains("\r\n\(line)\r\n"))
    }
  }

  @Test(arguments: [
    ("Upload-Metadata", "a\r\nX-Evil: 1"), ("X", "a\nb"), ("X", "a\0b"), ("Bad Name", "v"), ("X:", "v"), ("", "v"),
    ("X\r\nY", "v"), ("Transfer-Encoding", "chunked"), ("Content-Length", "11"),
  ])
  func aHeaderThatWouldBreakTheRequestIsRefused(_ name: String, _ value: String) async {
    let url = HTTPURL("http://127.0.0.1:9/a?secret")!
    let error = await failure { () async throws(TransportError) in
      try await transport.send(
        HTTPRequest("PUT", url, [name: value]), body: BlobSlice(PatternSource(length: 10), length: 10), Exchange())
    }
    #expect(error.code == .badRequest)
    #expect(!error.message.contains("Evil") && !error.message.contains("secret"))
  }

  /// The name of the server, or that of the proxy.
  @Test(arguments: [
    ("http://bücher.example/a", "http://127.0.0.1:1"), ("http://media.example/a", "http://bücher.example:1"),
    ("https://media.example/a", "socks5h://bücher.example:1"),
  ])
  func aNameOutsideASCIIIsRefused(_ url: String, _ proxy: String) async {
    let transport = SocketTransport(.init(proxy: Proxy(proxy)!, environment: [:]))
    let error = await failure { () async throws(TransportError) in try await transport.get(HTTPURL(url)!) }
    #expect(error.code == .badRequest)
    let reason = "has characters outside ASCII: give the name in its ASCII form, which begins with xn--"
    #expect(error.message == "GET \(url): 'bücher.example' \(reason)")
  }

  @Test func aMethodThatWouldBreakTheRequestIsRefused() async {
    let error = await failure { () async throws(TransportError) in
      try await transport.get(HTTPURL("http://127.0.0.1:9/")!, "GET / HTTP/1.1\r\nX: y\r\n\r\nGET")
    }
    #expect(error.code == .badRequest)
  }

  @Test func aSourceThatFailsEndsTheRequestWithItsReason() async {
    let peer = ScriptedPeer([.discard])
    let broken = BlobError(.io, "read card at byte 200000: Input/output error", errno: 5)
    let source = FaultySource(PatternSource(length: 1 << 20), .fail(at: 200_000, broken))
    let error = await failure { () async throws(TransportError) in try await transport.put(peer.url(), source) }
    #expect(error.code == .source)
    #expect(error.cause?.code == .io && error.cause?.errno == 5)
    #expect(error.message.hasPrefix("PUT \(peer.url()): read card"))
  }

  @Test func aSourceThatEndsEarlyNeverLooksComplete() async {
    let peer = ScriptedPeer([.readRequest, answer()])
    let source = FaultySource(PatternSource(length: 1 << 20), .truncate(at: 500_000))
    let error = await failure { () async throws(TransportError) in try await transport.put(peer.url(), source) }
    #expect(error.code == .source && error.cause?.code == .truncated)
    await peer.wait { $0.ended == 1 }
    #expect(peer.seen.steps == [0])
  }

  @Test func noMoreThanAnnouncedIsSentWhenTheSourceGivesMore() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let source = ListSource(pieces: [[1, 2], [3, 4]], length: 4)
    _ = try await transport.put(peer.url(), source)
    #expect(peer.body() == [1, 2, 3, 4])
  }
}
