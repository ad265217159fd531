import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import TestSupport
import Testing

/// A request whose body waits for the rate limit still hears what the server says.
@Suite struct RateLimitTests {
  private let limiter = RateLimiter(bytesPerSecond: 1)
  private let others = Cancellation()

  /// Other readers have taken the bytes of the next 40 seconds.
  init() {
    for _ in 0..<40 {
      SystemThread.start("other") { [limiter, others] in _ = try? limiter.take(upTo: 1, others) }
    }
    pauseThread(milliseconds: 300)
  }

  private func transport() -> SocketTransport { SocketTransport(.init(connections: 1, limiter: limiter)) }

  @Test(arguments: [nil, 200_000]) func anInterimResponseIsDeliveredAtOnce(_ length: Int64?) async throws {
    defer { others.cancel() }
    let peer = ScriptedPeer([.readHead, .send("HTTP/1.1 104 Here\r\nLocation: /u\r\n\r\n"), .hold])
    let url = peer.url()
    let told = Tally()
    let source = PatternSource(length: length ?? 200_000, knowsLength: length != nil)
    let task = Task { [transport = transport()] in
      try await transport.send(
        HTTPRequest("POST", url), body: BlobSlice(source), Exchange(interim: { told.add($0.status) }))
    }
    let began = ContinuousClock.now
    while told.value == 0, ContinuousClock.now - began < .seconds(10) { try await Task.sleep(for: .milliseconds(20)) }
    #expect(told.value == 104)
    task.cancel()
    _ = try? await task.value
  }

  @Test func anEarlyAnswerEndsTheRequest() async throws {
    defer { others.cancel() }
    let peer = ScriptedPeer([.readHead, answer("413 Content Too Large", "large"), .hold])
    let began = ContinuousClock.now
    let response = try await transport().put(peer.url(), PatternSource(length: 200_000))
    #expect(response.status == 413 && ContinuousClock.now - began < .seconds(10))
  }

  /// The server's patience is not at its end while the client itself waits.
  @Test func waitingForTheRateIsNoTimeout() async throws {
    others.cancel()
    let peer = ScriptedPeer([.readRequest, answer("201 Created")])
    let slow = RateLimiter(bytesPerSecond: 20_000)
    let transport = SocketTransport(
      .init(connections: 1, noProgress: .milliseconds(80), finishing: .milliseconds(400), limiter: slow))
    let began = ContinuousClock.now
    let response = try await transport.put(peer.url(), PatternSource(length: 40_000))
    #expect(response.status == 201 && ContinuousClock.now - began > .milliseconds(1500))
  }
}
