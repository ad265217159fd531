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
    let gate = Monitor(false)
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let source = GatedSource(source: pattern, gate: gate, blocks: .open)
    let upload = Task { try await transport.send(request, body: BlobSlice(source), Exchange()) }
    gate.update { $0 = true }
    #expect(try await upload.value.isSuccess)
    #expect(served.contents(of: "film") == pattern.bytes(count: 200_000))
  }

  /// An app asks what the server has of one photo while many others are still downloaded.
  @Test func aQuestionWaitsForNoSource() async throws {
    let served = try ServedFolder()
    let gate = Monitor(false)
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let waiting = (0..<260).map { _ in
      let source = GatedSource(source: pattern, gate: gate, blocks: .open)
      return Task { try await transport.send(request, body: BlobSlice(source), Exchange()) }
    }
    try await Task.sleep(for: .milliseconds(500))
    let begin = ContinuousClock.now
    _ = try await transport.send(HTTPRequest("HEAD", served.endpoint), body: nil, Exchange())
    #expect(ContinuousClock.now - begin < .seconds(5))
    for upload in waiting { upload.cancel() }
    gate.update { $0 = true }
    for upload in waiting { _ = await upload.result }
  }

  /// A source on a hung disk keeps its thread, and more of them than there are threads must not hold up others.
  @Test(arguments: GatedSource.Call.allCases)
  func sourcesThatCannotBeInterruptedHoldUpNoOther(_ call: GatedSource.Call) async throws {
    let served = try ServedFolder()
    let gate = Monitor(false)
    defer { gate.update { $0 = true } }
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "film".utf8))
    let hung = (0..<260).map { _ in
      Task {
        try await transport.send(
          request, body: BlobSlice(GatedSource(source: pattern, gate: gate, blocks: call)), Exchange())
      }
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
    #expect(try await transport.send(request, body: BlobSlice(source), Exchange()).isSuccess)
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

/// A source one call of which ignores cancellation, and returns once its gate is open.
struct GatedSource: BlobSource {
  enum Call: CaseIterable { case info, open, read }
  let source: PatternSource
  let gate: Monitor<Bool>
  let blocks: Call

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    wait(at: .info)
    return try source.info(cancel)
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    wait(at: .open)
    return GatedReader(try source.open(at: offset, Cancellation()), self)
  }

  fileprivate func wait(at call: Call) { if call == blocks { gate.wait { $0 ? () : nil } } }
}

private final class GatedReader: BlobReader {
  private let reader: any BlobReader
  private let source: GatedSource
  var info: BlobInfo { reader.info }

  init(_ reader: any BlobReader, _ source: GatedSource) { (self.reader, self.source) = (reader, source) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    source.wait(at: .read)
    return try reader.read(into: buffer)
  }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try reader.finish() }
}
