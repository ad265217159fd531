import BlobHTTP
import BlobStreams
import BlobTesting
import BlobURLSession
import Blobs
import Foundation
import TestSupport
import Testing

/// Sources that need long for their first byte, as a photo that is downloaded first.
@Suite(.timeLimit(.minutes(1)))
struct FirstByteTests {
  private let transport = URLSessionTransport()
  private let pattern = PatternSource(length: 200_000)

  /// A source of which one kind of call ignores cancellation.
  private func hanging(at place: GatedSource.Place, _ gate: ThreadGate) -> GatedSource {
    GatedSource(source: pattern, gate: gate, at: place, endsWhenCancelled: false)
  }

  /// URLSession ends a request of which nothing moves for 60 s.
  @Test(arguments: [FaultySource.Fault.stallOpening, .stall(at: 0)])
  func noRequestWaitsForTheFirstByte(_ fault: FaultySource.Fault) async throws {
    let peer = ScriptedPeer([.readHead, .discard])
    let slow = FaultySource(pattern, fault)
    let upload = Task { try await transport.send(put(to: peer.port), body: BlobSlice(slow), Exchange()) }
    while slow.openings == 0 { try await Task.sleep(for: .milliseconds(5)) }
    try await Task.sleep(for: .milliseconds(300))
    #expect(peer.seen.received.isEmpty, "no connection was made")
    upload.cancel()
    let error = await #expect(throws: TransportError.self) { () async throws in _ = try await upload.value }
    #expect(error?.code == .cancelled)
  }

  @Test func aRequestIsMadeOnceTheFirstByteIsThere() async throws {
    let served = try ServedFolder()
    let gate = ThreadGate()
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let source = hanging(at: .opening, gate)
    let upload = Task { try await transport.send(request, body: BlobSlice(source), Exchange()) }
    gate.open()
    #expect(try await upload.value.isSuccess)
    #expect(served.contents(of: "film") == pattern.bytes(count: 200_000))
  }

  /// An app asks what the server has of one photo while many others are still downloaded.
  @Test func aQuestionWaitsForNoSource() async throws {
    let served = try ServedFolder()
    let gate = ThreadGate()
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let waiting = (0..<260).map { _ in
      let source = hanging(at: .opening, gate)
      return Task { try await transport.send(request, body: BlobSlice(source), Exchange()) }
    }
    try await Task.sleep(for: .milliseconds(500))
    let begin = ContinuousClock.now
    _ = try await transport.send(HTTPRequest("HEAD", served.endpoint), body: nil, Exchange())
    #expect(ContinuousClock.now - begin < .seconds(5))
    for upload in waiting { upload.cancel() }
    gate.open()
    for upload in waiting { _ = await upload.result }
  }

  /// A source on a hung disk keeps its thread, and more of them than there are threads must not hold up others.
  @Test(arguments: [GatedSource.Place.info, .opening, .reading])
  func sourcesThatCannotBeInterruptedHoldUpNoOther(_ place: GatedSource.Place) async throws {
    let served = try ServedFolder()
    let gate = ThreadGate()
    defer { gate.open() }
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let hung = (0..<260).map { _ in
      let source = hanging(at: place, gate)
      return Task { try await transport.send(request, body: BlobSlice(source), Exchange()) }
    }
    for upload in hung {
      upload.cancel()
      let error = await #expect(throws: TransportError.self) { () async throws in _ = try await upload.value }
      #expect(error?.code == .cancelled)
    }
    #expect(try await transport.send(request, body: BlobSlice(pattern), Exchange()).isSuccess)
    #expect(served.contents(of: "film") == pattern.bytes(count: 200_000))
  }

  @Test func aSourceThatIsInvalidatedBeforeItsFirstByteIsOpenedAgain() async throws {
    let served = try ServedFolder()
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let source = FaultySource(pattern, .invalidate(at: 0, times: 3))
    #expect(try await transport.send(request, body: BlobSlice(source), Exchange()).isSuccess)
    #expect(served.contents(of: "film") == pattern.bytes(count: 200_000))
    let dead = FaultySource(pattern, .invalidate(at: 0, times: .max))
    let error = await #expect(throws: TransportError.self) { () async throws in
      _ = try await transport.send(request, body: BlobSlice(dead), Exchange())
    }
    #expect(error?.code == .source && error?.cause?.code == .invalidated)
    #expect(dead.openings == 4)
  }

  /// What was read of it before would be lost.
  @Test func aSequentialSourceCanBeSentAfterAServerThatWasNotThere() async throws {
    let served = try ServedFolder()
    let source = StreamSource(InputStream(data: Data(pattern.bytes(count: 200_000))), length: 200_000)
    let error = await #expect(throws: TransportError.self) { () async throws in
      _ = try await transport.send(put(to: 1), body: BlobSlice(source), Exchange())
    }
    #expect(error?.code == .connect)
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    var response: HTTPResponse?
    // The first request lets go of the stream on a thread of Foundation, which may be a little later.
    for _ in 0..<500 where response == nil {
      do throws(TransportError) {
        response = try await transport.send(request, body: BlobSlice(source), Exchange())
      } catch {
        guard error.message.contains("another reader is at it") else { throw error }
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    #expect(response?.isSuccess == true)
    #expect(served.contents(of: "film") == pattern.bytes(count: 200_000))
  }

  @Test func theSourceIsOpenedOnce() async throws {
    let served = try ServedFolder()
    let source = FaultySource(pattern)
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    #expect(try await transport.send(request, body: BlobSlice(source), Exchange()).isSuccess)
    #expect(source.openings == 1)
  }
}
