import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@Suite struct LimitTests {
  private let short = SocketTransport(
    .init(noProgress: .seconds(1), finishing: .seconds(2), connect: .seconds(1)))

  @Test func aServerThatTakesNothingMoreRunsIntoNoProgress() async {
    let peer = ScriptedPeer([.readHead, .hold])
    let error = await failure { () async throws(TransportError) in
      try await short.put(peer.url(), PatternSource(length: 1 << 32))
    }
    #expect(error.code == .timeout)
    #expect(error.message.contains("nothing moved for 1.0 seconds, after"), "\(error)")
  }

  @Test func aServerThatDoesNotAnswerRunsIntoFinishing() async {
    let peer = ScriptedPeer([.readRequest, .hold])
    let error = await failure { () async throws(TransportError) in
      try await short.put(peer.url(), PatternSource(length: 100_000))
    }
    #expect(error.code == .timeout)
    #expect(
      error.message.contains("did not answer within 2.0 seconds of the last byte, after 100000 bytes"), "\(error)")
  }

  @Test func aServerThatAnswersByteByByteRunsIntoFinishing() async {
    let bytes = (0..<20).flatMap { _ in [ScriptedPeer.Step.pause(400), .send("x")] }
    let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 201 Created\r\nX-Field: ")] + bytes)
    let error = await failure { () async throws(TransportError) in
      try await short.put(peer.url(), PatternSource(length: 100_000))
    }
    #expect(error.code == .timeout)
    #expect(error.message.contains("did not answer within 2.0 seconds of the last byte"), "\(error)")
  }

  @Test func aQuestionIsNoFinishing() async {
    let peer = ScriptedPeer([.readRequest, .hold])
    let error = await failure { () async throws(TransportError) in try await short.get(peer.url(), "HEAD") }
    #expect(error.code == .timeout)
    #expect(error.message.contains("nothing moved for 1.0 seconds"), "\(error)")
  }

  /// Bytes arrive all the time: in the content, in the head, or before it.
  @Test(arguments: ["x", "X-Field: 1\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n"])
  func anAnswerToAQuestionThatTricklesHasAnEnd(_ drop: String) async {
    let start = drop == "x" ? "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" : ""
    let head = drop.hasPrefix("X") ? "HTTP/1.1 200 OK\r\n" : ""
    let drops = (0..<100).flatMap { _ in [ScriptedPeer.Step.send(drop), .pause(50)] }
    let peer = ScriptedPeer([.readRequest, .send(start + head)] + drops)
    let transport = SocketTransport(.init(noProgress: .milliseconds(300), finishing: .milliseconds(600)))
    for method in drop == "x" ? ["OPTIONS", "GET"] : ["OPTIONS", "HEAD", "GET"] {
      let error = await failure { () async throws(TransportError) in try await transport.get(peer.url(), method) }
      #expect(error.code == .timeout)
      #expect(error.message.contains("did not end its answer within 0.6 seconds"), "\(error)")
    }
  }

  /// Content that is streamed to a receiver has no time limit.
  @Test func aDownloadMayTakeLongerThanAnAnswer() async throws {
    let drops = (0..<20).flatMap { _ in [ScriptedPeer.Step.send("x"), .pause(50)] }
    let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")] + drops)
    let transport = SocketTransport(.init(noProgress: .milliseconds(300), finishing: .milliseconds(600)))
    let response = try await transport.send(
      HTTPRequest("GET", peer.url()), body: nil, Exchange(received: { _ throws(BlobError) in }))
    #expect(response.status == 200)
  }

  @Test func aSlowSourceIsNotTheServersFault() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let pieces = [[UInt8]](repeating: [UInt8](repeating: 1, count: 50_000), count: 2)
    // Longer than the limit: time spent in the source must not count.
    let source = ListSource(pieces: pieces, length: 100_000) { pauseThread(milliseconds: 1500) }
    #expect(try await short.put(peer.url(), source).status == 200)
  }

  @Test func aServerThatTakesNoConnectionRunsIntoConnect() async {
    let (listener, port) = Loopback.listen(backlog: 0)
    let filler = Loopback.connect(port: port)!
    defer { for socket in [listener, filler] { Loopback.close(socket) } }
    let error = await failure { () async throws(TransportError) in
      try await short.get(HTTPURL("http://127.0.0.1:\(port)/")!)
    }
    #expect(error.code == .connect)
    #expect(error.message.contains("no connection to 127.0.0.1:\(port) within 1.0 seconds"), "\(error)")
  }

  // MARK: Endless responses

  private let quick = SocketTransport(.init(noProgress: .milliseconds(300), finishing: .milliseconds(600)))

  private func drops(_ text: String) -> [ScriptedPeer.Step] {
    (0..<400).flatMap { _ in [ScriptedPeer.Step.send(text), .pause(50)] }
  }

  /// The server does not read the body, and its refusal never ends.
  @Test(arguments: [true, false]) func theRestOfAnEarlyRefusalHasAnEnd(_ knowsLength: Bool) async throws {
    let refusal = "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
    let peer = ScriptedPeer([.readHead, .send(refusal)] + drops("1\r\nx\r\n"))
    let response = try await quick.put(peer.url(), PatternSource(length: 1 << 32, knowsLength: knowsLength))
    #expect(response.status == 403 && response.body.contains(UInt8(ascii: "x")))
    #expect(peer.seen.steps[0] < 400)
  }

  /// The refusal never ends either while the server slowly reads the body.
  @Test func theRestOfAnEarlyRefusalHasAnEndWhileTheBodyMoves() async throws {
    let refusal = "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
    let reads = (0..<400).flatMap { _ in [ScriptedPeer.Step.read(1 << 20), .send("1\r\nx\r\n"), .pause(50)] }
    let peer = ScriptedPeer([.readHead, .send(refusal)] + reads)
    #expect(try await quick.put(peer.url(), PatternSource(length: 1 << 32)).status == 403)
    #expect(peer.seen.steps[0] < 600)
  }

  @Test func interimHeadsPutTheAnswerOff() async throws {
    let heads = drops("HTTP/1.1 102 Processing\r\n\r\n").prefix(60)
    let peer = ScriptedPeer([.readRequest] + heads + [answer()])
    #expect(try await quick.put(peer.url(), PatternSource(length: 100_000)).status == 200)
  }

  /// The server has received the body, or reads nothing more of it.
  @Test(arguments: [ScriptedPeer.Step.readRequest, .readHead], [100_000, 1 << 32] as [Int64])
  func interimHeadsPutItOffForSomeTimeOnly(_ first: ScriptedPeer.Step, _ length: Int64) async {
    if case .readRequest = first, length > 100_000 { return }
    let short = SocketTransport(.init(noProgress: .milliseconds(200), finishing: .milliseconds(200)))
    let peer = ScriptedPeer([first] + drops("HTTP/1.1 102 Processing\r\n\r\n"))
    let error = await failure { () async throws(TransportError) in
      try await short.put(peer.url(), PatternSource(length: length))
    }
    #expect(error.code == .timeout, "\(error)")
    #expect(peer.seen.steps[0] < 400 && peer.seen.steps[0] > 30)
  }
}
