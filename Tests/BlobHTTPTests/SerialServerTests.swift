import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

/// Servers that serve one connection after the other: any connection that is open and unused keeps them from serving
/// the others.
@Suite struct SerialServerTests {
  /// More requests than any of these tests sends.
  private static func requests(_ answer: ScriptedPeer.Step..., count: Int = 400) -> [ScriptedPeer.Step] {
    (0..<count).flatMap { _ in [.readRequest] + answer }
  }

  /// The first request takes so long that connections are made ahead. They are used before others are made, in the
  /// order in which the server accepts them, unless two were made at the same moment: hence several rounds.
  @Test(.timeLimit(.minutes(1))) func unusedConnectionsAreUsedBeforeNewOnes() async throws {
    var times: [Duration] = []
    while times.count < 10, times.last ?? .seconds(2) > .seconds(1) {
      let answer = ScriptedPeer.Step.send("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
      let peer = ScriptedPeer(
        [.readRequest, .pause(500), answer, .close], [.readRequest, answer, .close], serially: true)
      let transport = SocketTransport()
      transport.expect(bodiesAt: peer.url(), atMost: 4)
      _ = try await transport.get(peer.url(), "OPTIONS")
      let began = ContinuousClock.now
      for _ in 0..<8 { _ = try await transport.put(peer.url(), PatternSource(length: 10)) }
      times.append(ContinuousClock.now - began)
    }
    #expect(times.last! < .seconds(1), "\(times)")
  }

  /// A connection that became idle is closed for the sake of a request that waits on another one.
  @Test(.timeLimit(.minutes(1)), arguments: [10, 8 << 20])
  func anIdleConnectionIsClosedForAWaitingRequest(_ size: Int64) async throws {
    let peer = ScriptedPeer(Self.requests(.pause(300), answer()), serially: true)
    let transport = SocketTransport(.init(connections: 4, adapts: false))
    let began = ContinuousClock.now
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<4 { group.addTask { try await transport.put(peer.url(), PatternSource(length: size)).status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(ContinuousClock.now - began < .seconds(15))
  }

  /// A connection that always has a next request is closed now and then for a request that waits on another one.
  @Test(.timeLimit(.minutes(1))) func aBusyConnectionGivesWay() async throws {
    let peer = ScriptedPeer(Self.requests(.pause(100), answer()), serially: true)
    let transport = SocketTransport(.init(connections: 2, adapts: false))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<150 { group.addTask { try await transport.put(peer.url(), PatternSource(length: 10)).status } }
      for try await status in group { #expect(status == 200) }
    }
    // The first connection alone would serve all requests but one, within 15 seconds.
    let second = peer.seen.steps[1] / 3
    #expect(second > 1, "the second connection served \(second) requests")
  }
}
