import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient
@testable import BlobHTTP

// Sources whose reads hang.
extension CopiedTests {
  /// The worker, or its replacement, continues while a thread is still blocked in the source.
  @Test(arguments: both, both) func aSourceThatIsStuckHoldsNobody(_ isAhead: Bool, _ isKept: Bool) async throws {
    let gate = Monitor((entered: false, open: false))
    var source = AskingSource(pattern(), isAsking: isAhead)
    source.before = {
      gate.update { $0.entered = true }
      gate.wait { $0.open ? () : nil }
    }
    let peer = ScriptedPeer(
      (isKept ? [.readRequest, answer()] : []) + [.readHead, .discard], [.readRequest, answer()])
    if isKept { _ = try await transport.get(peer.url()) }
    let task = Task { [source] in try await put(peer, source) }
    while !gate.update({ $0.entered }) { await Task.yield() }
    task.cancel()
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try await transport.put(peer.url("/b"), PatternSource(length: 100_000)).status == 200)
    #expect(source.use.closed.value == 0)
    gate.update { $0.open = true }
    await expectAllClosed(source)
  }

  /// A source that reacts to cancellation is also cancelled if the server does not need its bytes.
  @Test func aThreadThatReadsInVainIsEnded() async throws {
    let source = AskingSource(FaultySource(pattern(), .stall(at: 3 << 20)), isAsking: true)
    let peer = ScriptedPeer([.readHead, .read(3 << 20), answer("413 Too much"), .discard])
    let transport = SocketTransport(.init(connections: 1, noProgress: .seconds(1)))
    let task = Task { try await transport.put(peer.url(), source) }
    await peer.wait { $0.steps == [3] }
    task.cancel()
    _ = await task.result
    await expectAllClosed(source)
  }

  #if os(Linux)
    /// The memory counts as used as long as a thread may write to it.
    @Test func theMemoryIsFreedOnlyWhenTheReadIsOver() throws {
      let gate = Monitor(false)
      let freed = Monitor(0)
      var source = AskingSource(pattern(), isAsking: true)
      source.before = { gate.wait { $0 ? () : nil } }
      var feed: ReadAheadFeed? = ReadAheadFeed(
        try BlobSlice(source).open(Cancellation()), length: Int64(size), piece: 256 << 10
      ) {
        freed.update { $0 += 1 }
      }
      #expect(feed?.hasBegun == false)
      feed?.begin()
      #expect(feed?.hasBegun == true)
      while source.use.reads.value == 0 { pauseThread(milliseconds: 1) }
      feed = nil
      #expect(freed.update { $0 } == 0)
      gate.update { $0 = true }
      freed.wait { $0 == 1 ? () : nil }
    }
  #endif
}
