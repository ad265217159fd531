import BlobHTTP
import BlobTesting
import TestSupport
import BlobURLSession
import Blobs
import Testing

/// Effects of a slow source on its own upload and on others.
@Suite(.timeLimit(.minutes(1)))
struct PatienceTests {
  private let transport = URLSessionTransport()

  @Test func cancellingEndsAStalledUploadAtOnce() async throws {
    let peer = ScriptedPeer([.readHead, .discard])
    let stalled = FaultySource(PatternSource(length: 4 << 20), .stall(at: 1 << 20))
    let upload = Task {
      try await transport.send(put(to: peer.port), body: BlobSlice(stalled), Exchange())
    }
    await peer.wait { $0.steps.first == 1 }
    let start = ContinuousClock.now
    upload.cancel()
    let error = await #expect(throws: TransportError.self) { () async throws in _ = try await upload.value }
    #expect(error?.code == .cancelled)
    #expect(start.duration(to: .now) < .seconds(10))
    // The connection is closed, too.
    await peer.wait { $0.ended == 1 }
  }

  @Test func cancellingEndsAnUploadThatTheServerHolds() async throws {
    let peer = ScriptedPeer([.readHead, .hold])
    let upload = Task {
      try await transport.send(put(to: peer.port), body: BlobSlice(PatternSource(length: 64 << 20)), Exchange())
    }
    await peer.wait { $0.steps.first == 1 }
    upload.cancel()
    let error = await #expect(throws: TransportError.self) { () async throws in _ = try await upload.value }
    #expect(error?.code == .cancelled)
  }

  /// There are more slow uploads than cores, each waiting where the session waits for its source.
  @Test func slowUploadsStallNoOther() async throws {
    let slow = ScriptedPeer([.readHead, .discard])
    let served = try ServedFolder()
    let stalled = (0..<16).map { _ in
      Task {
        try await transport.send(
          put(to: slow.port), body: BlobSlice(FaultySource(PatternSource(length: 4 << 20), .stall(at: 100_000))),
          Exchange())
      }
    }
    await slow.wait { seen in seen.steps.filter { $0 == 1 }.count == 16 }
    let pattern = PatternSource(length: 8 << 20)
    let answer = try await transport.send(
      HTTPRequest("PUT", served.endpoint.appending(pathBytes: "fast".utf8)), body: BlobSlice(pattern), Exchange())
    #expect(answer.isSuccess)
    #expect(served.contents(of: "fast") == pattern.bytes(count: 8 << 20))
    for task in stalled { task.cancel() }
    for task in stalled {
      let error = await #expect(throws: TransportError.self) { () async throws in _ = try await task.value }
      #expect(error?.code == .cancelled)
    }
  }

  @Test func slowUploadBesideAFastOneBothArriveWhole() async throws {
    let served = try ServedFolder()
    let (slow, fast) = (PatternSource(length: 2 << 20, seed: 1), PatternSource(length: 8 << 20, seed: 2))
    let throttled = ThrottledSource(slow, RateLimiter(bytesPerSecond: 8 << 20))
    func send(_ source: any BlobSource, _ name: String) async throws -> HTTPResponse {
      let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: name.utf8))
      return try await transport.send(request, body: BlobSlice(source), Exchange())
    }
    async let first = send(throttled, "slow")
    async let second = send(fast, "fast")
    let answers = try await [first, second]
    let statuses = answers.map { $0.status }
    #expect(statuses == [201, 201])
    #expect(served.contents(of: "slow") == slow.bytes(count: 2 << 20))
    #expect(served.contents(of: "fast") == fast.bytes(count: 8 << 20))
  }
}
