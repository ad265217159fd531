import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import TestSupport
import Testing

/// The rate limit also holds for content that is read back.
@Suite struct ReceivedRateTests {
  private let content = [UInt8](repeating: 7, count: 500_000)

  private func read(_ peer: HTTPPeer, at rate: Int64, _ count: Tally) async throws -> HTTPResponse {
    let url = peer.url
    let transport = SocketTransport(.init(connections: 1, limiter: RateLimiter(bytesPerSecond: rate)))
    return try await transport.send(
      HTTPRequest("GET", url), body: nil, Exchange(received: { bytes throws(BlobError) in count.add(bytes.count) }))
  }

  /// The first tenth of a second's worth passes at once.
  @Test func contentThatIsReceivedWaitsForTheLimit() async throws {
    let peer = HTTPPeer { [content] _ in .init(200, [:], content) }
    defer { peer.stop() }
    let (count, began) = (Tally(), ContinuousClock.now)
    let response = try await read(peer, at: 1_000_000, count)
    #expect(response.status == 200 && count.value == content.count)
    #expect(ContinuousClock.now - began >= .milliseconds(350))
  }

  /// All of the content would take days.
  @Test func aReadThatWaitsForTheLimitCanBeCancelled() async throws {
    let peer = HTTPPeer { [content] _ in .init(200, [:], content) }
    defer { peer.stop() }
    let count = Tally()
    let reading = Task { try await read(peer, at: 1, count) }
    while peer.requests.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    reading.cancel()
    let began = ContinuousClock.now
    await #expect(throws: TransportError.self) { try await reading.value }
    #expect(ContinuousClock.now - began < .seconds(20) && count.value < content.count)
  }
}
