import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Platform
import Synchronization
import Testing

/// Workers and their reusable connections.
@Suite struct ConnectionTests {
  @Test func oneConnectionServesOneRequestAfterTheOther() async throws {
    let peer = ScriptedPeer(Array(repeating: [.readRequest, answer()], count: 20).flatMap { $0 })
    let transport = SocketTransport()
    for size in [0, 1, 100_000, 10, 200_000, 65_536] {
      _ = try await transport.put(peer.url(), PatternSource(length: Int64(size)))
      _ = try await transport.put(peer.url(), PatternSource(length: Int64(size), knowsLength: false))
      _ = try await transport.get(peer.url())
    }
    #expect(peer.seen.received.count == 1)
  }

  @Test func anotherServerDoesNotCostTheConnection() async throws {
    let script = [.readRequest, .hold, answer()] + Array(repeating: [.readRequest, answer()], count: 8).flatMap { $0 }
    let (here, there) = (ScriptedPeer(script), ScriptedPeer(script))
    let transport = SocketTransport()
    async let first = transport.get(here.url())
    async let second = transport.get(there.url())
    // Both requests must be active at once; otherwise one worker would handle both.
    for peer in [here, there] { await peer.wait { $0.steps == [1] } }
    for peer in [here, there] { peer.release() }
    _ = try await (first, second)
    for _ in 0..<3 {
      _ = try await transport.get(here.url())
      _ = try await transport.get(there.url())
    }
    #expect(here.seen.received.count == 1 && there.seen.received.count == 1)
  }

  @Test func aRequestWaitsIfAllConnectionsAreBusy() async throws {
    let peer = ScriptedPeer(Array(repeating: [.readRequest, .hold, answer()], count: 6).flatMap { $0 })
    let transport = SocketTransport(.init(connections: 2))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<6 { group.addTask { try await transport.put(peer.url(), PatternSource(length: 9)).status } }
      await peer.wait { $0.steps == [1, 1] }
      // Long enough for a third connection to appear; later the controller may try one more.
      try await Task.sleep(for: .milliseconds(50))
      #expect(peer.seen.received.count == 2)
      peer.release()
      for try await status in group { #expect(status == 200) }
    }
  }

  @Test func onlyAsManyWorkersStartAsAreNeeded() async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer()])
    let transport = SocketTransport(.init(connections: 32))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<32 { group.addTask { try await transport.put(peer.url(), PatternSource(length: 9)).status } }
      await peer.wait { $0.steps == Array(repeating: 1, count: 32) }
      peer.release()
      for try await status in group { #expect(status == 200) }
    }
  }

  @Test func anExplicitNumberGoesAtOnce() async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer()])
    let transport = SocketTransport(.init(connections: 12, adapts: false))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<12 { group.addTask { try await transport.put(peer.url(), PatternSource(length: 9)).status } }
      await peer.wait { $0.steps == Array(repeating: 1, count: 12) }
      peer.release()
      for try await status in group { #expect(status == 200) }
    }
    #expect(transport.learned == nil)
  }

  @Test func aServerThatIsAskedTooMuchIsAskedHalfAsMuch() async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer("503 Service Unavailable")])
    let transport = SocketTransport(.init(connections: 16))
    let widths = Mutex<[Int]>([])
    transport.follow { width in widths.withLock { $0.append(width) } }
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<16 { group.addTask { try await transport.put(peer.url(), PatternSource(length: 9)).status } }
      await peer.wait { $0.steps == Array(repeating: 1, count: 16) }
      peer.release()
      for try await status in group { #expect(status == 503) }
    }
    // Refusals of requests that were sent together count as one.
    #expect(widths.withLock { $0 } == [4, 8, 16, 8])
    #expect(transport.learned == LearnedConcurrency(width: 8, wasRefused: true))
  }

  @Test func theTransportBeginsWithTheLearnedConcurrency() async throws {
    let peer = ScriptedPeer(Array(repeating: [.readRequest, .hold, answer()], count: 3).flatMap { $0 })
    let transport = SocketTransport(.init(connections: 16))
    transport.expect(LearnedConcurrency(width: 2, wasRefused: true))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<6 { group.addTask { try await transport.put(peer.url(), PatternSource(length: 9)).status } }
      await peer.wait { $0.steps == [1, 1] }
      // Long enough for a third connection to appear; later the controller may try one more.
      try await Task.sleep(for: .milliseconds(50))
      #expect(peer.seen.received.count == 2)
      peer.release()
      for try await status in group { #expect(status == 200) }
    }
  }

  @Test func aConnectionClosedBetweenRequestsIsReplaced() async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .close])
    let transport = SocketTransport()
    for number in 1...5 {
      _ = try await transport.send(
        HTTPRequest("POST", peer.url()), body: BlobSlice(PatternSource(length: 100_000)), Exchange())
      await peer.wait { $0.ended == number }
    }
    #expect(peer.seen.received.count == 5)
  }

  /// For example, the source is read at a limited rate, and the server waits only a few seconds for a request.
  @Test(arguments: ["POST", "PUT"]) func aConnectionThatIsClosedWhileASmallBodyIsReadIsReplaced(
    _ method: String
  ) async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .hold, .close], [.readRequest, answer()])
    let transport = SocketTransport()
    _ = try await transport.get(peer.url())
    var source = AskingSource(PatternSource(length: 1000), isAsking: false)
    source.most = 100
    source.before = {
      peer.release()
      while peer.seen.ended == 0 { usleep(1000) }
    }
    _ = try await transport.send(HTTPRequest(method, peer.url()), body: BlobSlice(source), Exchange())
    #expect(peer.body(1) == PatternSource(length: 1000).bytes(count: 1000))
    // Reading may cost money, so the source is read once.
    #expect(source.use.opened.value == 1)
  }

  /// A peer whose idle connection looks alive and closes once the request has arrived.
  private func dyingPeer() -> ScriptedPeer {
    ScriptedPeer([.readRequest, answer(), .readRequest, .close], [.readRequest, answer()])
  }

  @Test(arguments: [1000, 300_000], [nil, 10, 100_000] as [Int64?])
  func aRequestThatMayBeRepeatedIsSentAgainFromItsFirstByte(_ size: Int, after first: Int64?) async throws {
    let peer = dyingPeer()
    let transport = SocketTransport()
    let source = PatternSource(length: Int64(size), seed: 3)
    if let first {
      _ = try await transport.put(peer.url(), PatternSource(length: first))
    } else {
      _ = try await transport.get(peer.url())
    }
    let sent = Tally()
    let response = try await transport.send(
      HTTPRequest("PUT", peer.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
    #expect(response.status == 200)
    #expect(peer.body(1) == source.bytes(count: size))
    #expect(sent.value == size)
  }

  @Test(arguments: ["POST", "PATCH"])
  func aRequestThatMustNotBeRepeatedIsNot(_ method: String) async throws {
    for size in [0, 1000, 300_000] as [Int64] {
      let peer = dyingPeer()
      let transport = SocketTransport()
      _ = try await transport.get(peer.url())
      let error = await failure { () async throws(TransportError) in
        try await transport.send(
          HTTPRequest(method, peer.url()), body: BlobSlice(PatternSource(length: size)), Exchange())
      }
      #expect(error.code == .broken)
      #expect(!peer.seen.received.dropFirst().contains { !$0.isEmpty })
    }
  }

  @Test func aBodyThatCannotBeReadAgainIsNotSentAgain() async throws {
    let peer = dyingPeer()
    let transport = SocketTransport()
    _ = try await transport.get(peer.url())
    let error = await failure { () async throws(TransportError) in
      try await transport.put(peer.url(), PatternSource(length: 300_000, access: .sequential))
    }
    #expect(error.code == .broken, "\(error)")
  }

  @Test func aBodyThatChangedMeanwhileIsNotSentAgain() async throws {
    let peer = dyingPeer()
    let transport = SocketTransport()
    _ = try await transport.get(peer.url())
    let source = FaultySource(
      PatternSource(length: 300_000), .replaced(by: PatternSource(length: 300_001, seed: 1), from: 2))
    let error = await failure { () async throws(TransportError) in try await transport.put(peer.url(), source) }
    #expect(error.code == .source && error.cause?.code == .changed, "\(error)")
  }

  @Test func workersEndWithTheirTransport() async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .discard])
    do {
      let transport = SocketTransport()
      _ = try await transport.get(peer.url())
    }
    await peer.wait { $0.ended == 1 }
  }
}
