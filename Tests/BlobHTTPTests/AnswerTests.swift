import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@Suite struct AnswerTests {
  let transport = SocketTransport()
  private static let tooLarge = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge"

  @Test func anyStatusIsAnAnswer() async throws {
    let peer = ScriptedPeer([.readRequest, answer("500 Oops", "why", "ETag: \"x\"\r\nX-A: 1\r\nx-a:\t2 \r\n")])
    let response = try await transport.get(peer.url())
    #expect(response.status == 500)
    #expect(response.body == Array("why".utf8))
    #expect(response.headers["etag"] == "\"x\"")
    #expect(response.headers.list("X-A") == ["1", "2"])
  }

  @Test func headHasNoContentButItsLength() async throws {
    let head = ScriptedPeer.Step.send("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nUpload-Offset: 7\r\n\r\n")
    let peer = ScriptedPeer([.readRequest, head, .readRequest, head])
    for _ in 0..<2 {
      let response = try await transport.get(peer.url(), "HEAD")
      #expect(response.headers["Content-Length"] == "12345")
      #expect(response.body.isEmpty)
    }
    #expect(peer.seen.received.count == 1)
  }

  @Test func redirectsAreNotFollowed() async throws {
    let peer = ScriptedPeer([.readRequest, answer("307 Temporary Redirect", "", "Location: /b\r\n"), .readRequest])
    let response = try await transport.put(peer.url(), PatternSource(length: 100_000))
    #expect(response.status == 307 && response.headers["Location"] == "/b")
  }

  @Test func everyInterimResponseExcept100IsReported() async throws {
    let peer = ScriptedPeer([
      .readHead,
      .send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u/1\r\n\r\n"),
      .read(200_000), .send("HTTP/1.1 104 x\r\nUpload-Offset: 200000\r\n\r\n"), answer("201 Created"),
    ])
    let heads = Mutex<[HTTPHead]>([])
    let response = try await transport.send(
      HTTPRequest("POST", peer.url()), body: BlobSlice(PatternSource(length: 200_000)),
      Exchange(interim: { head in heads.withLock { $0.append(head) } }))
    #expect(response.status == 201)
    let seen = heads.withLock { $0 }
    #expect(seen.map(\.status) == [104, 104])
    #expect(seen.first?.headers["location"] == "/u/1" && seen.last?.headers["Upload-Offset"] == "200000")
    #expect(response.headers["Location"] == nil)
  }

  /// The connection broke while the next bytes of the body were read. The interim response with the upload's state must
  /// still be reported.
  @Test func anInterimResponseBeforeABrokenConnectionIsReported() async throws {
    let peer = ScriptedPeer([.readHead, .send("HTTP/1.1 104 x\r\nLocation: /u/1\r\n\r\n"), .close])
    let source = TriggerSource(PatternSource(length: 8 << 20), at: 1) {
      for _ in 0..<500 where peer.seen.ended == 0 { pauseThread(milliseconds: 10) }
    }
    let heads = Mutex<[HTTPHead]>([])
    let error = await failure { () async throws(TransportError) in
      try await transport.send(
        HTTPRequest("POST", peer.url()), body: BlobSlice(source),
        Exchange(interim: { head in heads.withLock { $0.append(head) } }))
    }
    #expect(error.code == .broken, "\(error)")
    #expect(heads.withLock { $0.map { $0.headers["location"] } } == ["/u/1"])
  }

  @Test func trailersAreNoHeaders() async throws {
    let peer = ScriptedPeer([
      .readRequest,
      .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\n\r\n"),
    ])
    let response = try await transport.get(peer.url())
    #expect(response.body == Array("abc".utf8) && response.headers["X"] == nil)
  }

  @Test func aLongAnswerIsStreamedOrRefused() async throws {
    let long = String(repeating: "x", count: (1 << 20) + 1)
    let peer = ScriptedPeer([.readRequest, answer("200 OK", long)])
    let count = Tally()
    let response = try await transport.send(
      HTTPRequest("GET", peer.url()), body: nil, Exchange(received: { count.add($0.count) }))
    #expect(response.body.isEmpty && count.value == long.utf8.count)
    let error = await failure { () async throws(TransportError) in try await transport.get(peer.url()) }
    #expect(error.code == .longResponse)
  }

  @Test func theReceiverOfTheContentMayEndTheExchange() async {
    let peer = ScriptedPeer([.readRequest, answer("200 OK", String(repeating: "x", count: 100_000)), .hold])
    let error = await failure { () async throws(TransportError) in
      try await transport.send(
        HTTPRequest("GET", peer.url()), body: nil,
        Exchange(received: { _ throws(BlobError) in throw BlobError(.io, "disk full") }))
    }
    #expect(error.code == .source && error.cause?.message == "disk full")
  }

  @Test func anAnswerBeforeTheBodyIsSentStopsTheSending() async throws {
    let peer = ScriptedPeer([.readHead, .send(Self.tooLarge), .hold])
    let sent = Tally()
    let response = try await transport.send(
      HTTPRequest("PUT", peer.url()), body: BlobSlice(PatternSource(length: 1 << 32)),
      Exchange(sent: { sent.add($0) }))
    #expect(response.status == 413 && response.body == Array("large".utf8))
    #expect(sent.value < 1 << 30)
  }

  /// The peer closes without reading the body, so a reset follows the response, and sending may fail first.
  @Test func anAnswerWithAResetBehindItIsStillRead() async throws {
    let peer = ScriptedPeer([.readHead, .read(300_000), .send(Self.tooLarge), .close])
    for _ in 0..<40 {
      let response = try await transport.put(peer.url(), PatternSource(length: 1 << 30))
      #expect(response.status == 413)
    }
  }

  @Test(arguments: [
    ("SSH-2.0-OpenSSH_9.2\r\n", TransportError.Code.badResponse), ("\u{16}\u{3}\u{1}", .badResponse),
    ("HTTP/1.1 banana\r\n\r\n", .badResponse), ("HTTP/1.1 200 OK\r\nContent-Le", .broken),
    ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", .broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", .broken), ("", .broken),
  ])
  func anIncompleteOrInvalidResponseIsAnError(_ text: String, _ code: TransportError.Code) async {
    let peer = ScriptedPeer([.readRequest, .send(text), .close])
    let error = await failure { () async throws(TransportError) in
      try await transport.put(peer.url("/a?token=secret"), PatternSource(length: 100_000))
    }
    #expect(error.code == code, "\(error)")
    #expect(error.message.hasPrefix("PUT http://127.0.0.1:\(peer.port)/a: "))
    #expect(!error.message.contains("secret"))
  }

  @Test func aServerThatIsNotThereIsNamed() async {
    let (listener, port) = Loopback.listen()
    Loopback.close(listener)
    let error = await failure { () async throws(TransportError) in
      try await transport.put(HTTPURL("http://127.0.0.1:\(port)/a")!, PatternSource(length: 1))
    }
    #expect(error.code == .connect)
    #expect(error.message == "PUT http://127.0.0.1:\(port)/a: connection refused (127.0.0.1:\(port))")
  }

  @Test func aNameWithoutAddressIsNamed() async {
    let error = await failure { () async throws(TransportError) in
      try await transport.get(HTTPURL("http://nowhere.invalid/a")!)
    }
    #expect(error.code == .resolve)
    #expect(error.message.contains("nowhere.invalid"))
  }
}
