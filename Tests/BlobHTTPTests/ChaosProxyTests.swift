import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@Suite struct ChaosProxyTests {
  private let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer(), .readRequest, answer()])
  private let transport = SocketTransport()

  private func through(_ faults: ChaosProxy.Fault...) -> (proxy: ChaosProxy, url: HTTPURL) {
    let proxy = ChaosProxy(to: peer.port, ChaosProxy.Schedule(faults))
    return (proxy, HTTPURL("http://127.0.0.1:\(proxy.port)/a")!)
  }

  @Test func withoutFaultsEverythingPasses() async throws {
    let (proxy, url) = through()
    let source = PatternSource(length: 1_000_000)
    for _ in 0..<2 { #expect(try await transport.put(url, source).status == 200) }
    #expect(peer.body().starts(with: source.bytes(count: 1_000_000)))
    #expect(proxy.counters.connections == 1 && proxy.counters.bytesUp > 2_000_000)
  }

  @Test func aDroppedAnswerLeavesTheServerDone() async throws {
    let (proxy, url) = through(.dropResponse(2))
    #expect(try await transport.put(url, PatternSource(length: 100_000)).status == 200)
    let error = await failure { () async throws(TransportError) in
      try await transport.send(HTTPRequest("POST", url), body: BlobSlice(PatternSource(length: 200_000)), Exchange())
    }
    #expect(error.code == .broken)
    await peer.wait { $0.steps.first == 4 }
    #expect(proxy.counters.faults == 1)
  }

  @Test func aCutEndsAfterExactlySoManyBytes() async throws {
    let (proxy, url) = through(.cutUp(after: 300_000))
    let error = await failure { () async throws(TransportError) in
      try await transport.put(url, PatternSource(length: 1 << 24))
    }
    #expect(error.code == .broken, "\(error)")
    await peer.wait { $0.ended == 1 }
    #expect(peer.seen.received[0].count == 300_000)
    #expect(proxy.counters.bytesUp == 300_000)
  }

  @Test(arguments: [ChaosProxy.Fault.cutDown(after: 20), .reset(after: 100_000)])
  func aBrokenConnectionIsAnErrorAndTheNextWorks(_ fault: ChaosProxy.Fault) async throws {
    let (proxy, url) = through(fault)
    let error = await failure { () async throws(TransportError) in
      try await transport.put(url, PatternSource(length: 1 << 24))
    }
    #expect(error.code == .broken, "\(error)")
    #expect(try await transport.put(url, PatternSource(length: 100)).status == 200)
    #expect(proxy.counters.connections == 2)
  }

  @Test func aStallPasses() async throws {
    let (proxy, url) = through(.stall(after: 50_000, for: .milliseconds(50)))
    #expect(try await transport.put(url, PatternSource(length: 1_000_000)).status == 200)
    #expect(proxy.counters.faults == 1)
  }

  @Test func theSameSeedGivesTheSameFaults() {
    func faults(_ seed: UInt64) -> [ChaosProxy.Fault] {
      let schedule = ChaosProxy.Schedule(seed: seed)
      return (0..<20).map { schedule.fault(for: $0) }
    }
    #expect(faults(1) == faults(1))
    #expect(faults(1) != faults(2))
  }

  @Test func aFaultyTransportFailsBySchedule() async throws {
    let faulty = FaultyTransport(
      transport, [.before(.connect), .answer(HTTPResponse(head: HTTPHead(status: 503, headers: [:]))), .loseAnswer])
    let url = peer.url()
    let first = await failure { () async throws(TransportError) in try await faulty.get(url) }
    #expect(first.code == .connect && peer.seen.received.isEmpty)
    #expect(try await faulty.get(url).status == 503)
    let third = await failure { () async throws(TransportError) in try await faulty.get(url) }
    #expect(third.code == .broken)
    await peer.wait { $0.steps == [2] }
    #expect(try await faulty.get(url).status == 200)
    #expect(faulty.requests == 4)
  }
}
