import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

/// Connections that are made before the requests that use them.
@Suite struct AheadTests {
  private static let fiveTimes = (0..<5).flatMap { _ in [ScriptedPeer.Step.readRequest, answer()] }

  @Test(arguments: ["http", "https"]) func theFirstRequestsFindOne(_ scheme: String) async throws {
    let peer = ScriptedPeer(Self.fiveTimes)
    let certificate = try Certificate()
    let front = scheme == "https" ? TLSFront(certificate, to: peer.port) : nil
    let url = front?.url() ?? peer.url()
    let transport = SocketTransport(.init(caFile: certificate.path))
    // At most one connection, because a busy machine looks like a slow server, for which more connections are made.
    transport.expect(bodiesAt: url, atMost: 1)
    await peer.wait { $0.received.count == 1 }
    _ = try await transport.get(url, "OPTIONS")
    for size in [10, 100_000] { _ = try await transport.put(url, PatternSource(length: Int64(size))) }
    #expect(peer.seen.received.count == 1)
    #expect(peer.seen.heads.count == 3)
  }

  @Test(arguments: [1, 6, 64]) func aServerThatTakesItsTimeGetsWhatWillBeWanted(_ count: Int) async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer()] + Self.fiveTimes, Self.fiveTimes)
    let transport = SocketTransport()
    transport.expect(bodiesAt: peer.url(), atMost: count)
    async let asked = transport.get(peer.url(), "OPTIONS")
    await peer.wait { $0.received.count >= count }
    peer.release()
    #expect(try await asked.status == 200)
    for _ in 0..<4 { _ = try await transport.put(peer.url(), PatternSource(length: 10), length: 10) }
    #expect(peer.seen.received.count == count)
  }

  @Test func aServerThatAnswersAtOnceGetsNoMore() async throws {
    var counts: [Int] = []
    // A busy machine makes any server look slow, but hardly ten times in a row.
    while counts.count < 10, counts.last != 1 {
      let peer = ScriptedPeer(Self.fiveTimes)
      let transport = SocketTransport()
      transport.expect(bodiesAt: peer.url(), atMost: 64)
      _ = try await transport.get(peer.url(), "OPTIONS")
      try await Task.sleep(for: .milliseconds(100))
      _ = try await transport.put(peer.url(), PatternSource(length: 10))
      counts.append(peer.seen.received.count)
    }
    #expect(counts.last == 1, "\(counts)")
  }

  @Test func oneThatTheServerClosesIsReplaced() async throws {
    let peer = ScriptedPeer([.close], Self.fiveTimes)
    let transport = SocketTransport()
    transport.expect(bodiesAt: peer.url(), atMost: 1)
    await peer.wait { $0.ended == 1 }
    #expect(try await transport.get(peer.url(), "POST").status == 200)
    #expect(peer.seen.received.count == 2)
  }

  @Test func aTransportWithAFixedNumberConnectsOnlyForRequests() async throws {
    let peer = ScriptedPeer(Self.fiveTimes)
    let transport = SocketTransport(.init(connections: 4, adapts: false))
    transport.expect(bodiesAt: peer.url(), atMost: 64)
    try await Task.sleep(for: .milliseconds(50))
    #expect(peer.seen.received.isEmpty)
    _ = try await transport.put(peer.url(), PatternSource(length: 10))
  }

  /// The failed connection is reported once, to the request that uses it.
  @Test func theNextRequestReportsAnEarlyConnectionFailureOnce() async throws {
    let (listener, port) = Loopback.listen()
    Loopback.close(listener)
    let url = HTTPURL("http://127.0.0.1:\(port)/a?secret")!
    let transport = SocketTransport()
    transport.expect(bodiesAt: url, atMost: 64)
    for _ in 1...2 {
      let error = await failure { () async throws(TransportError) in try await transport.get(url) }
      #expect(error.code == .connect, "\(error)")
      #expect(
        error.message == "GET http://127.0.0.1:\(port)/a: connection refused (127.0.0.1:\(port))", "\(error.message)")
    }
  }

  @Test func releasingTheTransportEndsEarlyConnections() async throws {
    let (listener, port) = Loopback.listen(backlog: 0)
    // Fills the backlog; the next connection gets no response.
    let filler = Loopback.connect(port: port)!
    defer { for socket in [listener, filler] { Loopback.close(socket) } }
    do {
      let transport = SocketTransport()
      transport.expect(bodiesAt: HTTPURL("http://127.0.0.1:\(port)/a")!, atMost: 64)
      while !isConnecting(to: port) { await Task.yield() }
    }
    while isConnecting(to: port) { await Task.yield() }
  }
}
