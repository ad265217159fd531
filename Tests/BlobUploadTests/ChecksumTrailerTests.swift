import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Synchronization
import Testing

@testable import BlobUpload

/// Digests in trailers. tus 1.0 §Checksum, checksum-trailer.
@Suite struct ChecksumTrailerTests {
  private let peer = try! ServedFolder()

  private func uploader(_ transport: any Transport, port: Int? = nil) async throws -> Uploader {
    var destination = try await UploadDestination.discover(
      peer.endpoint, named: "tus", checksum: .sha256, over: SocketTransport())
    if let port {
      destination.endpoint = HTTPURL("http://127.0.0.1:\(port)/")!
      destination.headers["Host"] = "127.0.0.1:\(peer.endpoint.port)"
    }
    var uploader = Uploader(
      destination, transport: transport, retry: RetryPolicy(retries: 5, first: .milliseconds(1)))
    uploader.spool = SpoolOptions(memory: 200_000)
    uploader.partsAtOnce = 1
    return uploader
  }

  /// The pipe is not read ahead: every part is sent while it is read.
  @Test func aPipesDigestFollowsIt() async throws {
    defer { peer.stop() }
    let seen = Seen(SocketTransport())
    let pattern = PatternSource(length: 500_000, seed: 1)
    _ = try await uploader(seen).upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 500_000))
    #expect(seen.ways == [.none, .after, .after, .after, .before], "the last one tells the length, and has no bytes")
  }

  /// A digest in the header section would require a second download or a second query.
  @Test func aSourceThatIsNoFileIsReadOnce() async throws {
    defer { peer.stop() }
    for length: Int64 in [1000, 3 << 20, 20 << 20] {
      let seen = Seen(SocketTransport())
      let pattern = PatternSource(length: length, seed: 2)
      let source = FaultySource(pattern)
      _ = try await uploader(seen).upload(source, as: BytePath("of \(length)"))
      #expect(peer.contents(of: BytePath("of \(length)")) == pattern.bytes(count: Int(length)))
      let parts = seen.ways.count { $0 == .after }
      #expect(parts == max(1, (Int(length) + 8 << 20 - 1) / 8 << 20) && !seen.ways.contains(.before))
      #expect(source.openings == parts)
    }
  }

  @Test func aFilesDigestComesBeforeIt() async throws {
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let path = folder.path.appending("photo")
    let bytes = PatternSource(length: 300_000).bytes(count: 300_000)
    try Data(bytes).write(to: URL(fileURLWithPath: "\(path)"))
    let seen = Seen(SocketTransport())
    _ = try await uploader(seen).upload(FileSource(path), as: "photo")
    #expect(peer.contents(of: "photo") == bytes)
    #expect(seen.ways == [.before])
  }

  /// Bytes that are read for a digest are not sent, and the rate limit does not apply to them.
  @Test func aRateIsThatOfTheLink() async throws {
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let path = folder.path.appending("photo")
    let bytes = PatternSource(length: 3_000_000).bytes(count: 3_000_000)
    try Data(bytes).write(to: URL(fileURLWithPath: "\(path)"))
    let limiter = RateLimiter(bytesPerSecond: 2_000_000)
    let (seen, start) = (Seen(SocketTransport(.init(limiter: limiter))), ContinuousClock.now)
    _ = try await uploader(seen).upload(FileSource(path), as: "photo")
    #expect(peer.contents(of: "photo") == bytes && seen.ways == [.before])
    // The first tenth of a second is sent without a delay, and the last one at its begin. If reading for the digest counted too, it would take 2.9 s.
    let time = ContinuousClock.now - start
    #expect(time >= .milliseconds(1290) && time < .milliseconds(2800), "\(time)")
  }

  /// Only bytes that were not acknowledged are sent again, from the spool of the pipe.
  @Test func bytesThatChangeOnTheWayAreSentAgain() async throws {
    defer { peer.stop() }
    let proxy = ChaosProxy(
      to: peer.endpoint.port, .init([.flip(at: 300_000), .flip(at: 100_000), .flip(at: 50_000)]))
    let seen = Seen(SocketTransport(.init(connections: 1)))
    let pattern = PatternSource(length: 1_000_000, seed: 3)
    _ = try await uploader(seen, port: proxy.port).upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 1_000_000))
    #expect(proxy.counters.faults > 0)
    #expect(seen.statuses.contains(460))
    #expect(seen.sent <= 1_000_000 + Int64(seen.statuses.count { $0 == 460 }) * 200_000)
  }

  /// A proxy does not support chunked bodies, or drops trailers: later digests are in the header section.
  @Test(arguments: [nil, 411, 501]) func theDigestIsInTheHeaderSectionIfTrailersAreLost(_ status: Int?) async throws {
    defer { peer.stop() }
    let seen = Seen(SocketTransport(), dropping: true, status)
    let uploader = try await uploader(seen)
    let pattern = PatternSource(length: 500_000, seed: 4)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 500_000))
    #expect(seen.ways == [.none, .after, .before, .before, .before])
    _ = try await uploader.upload(pattern, as: "another")
    #expect(peer.contents(of: "another") == pattern.bytes(count: 500_000))
    #expect(seen.ways.count { $0 == .after } == 1, "every later upload knows")
  }

  @Test func aServerThatDoesNotOfferTrailersGetsNone() async throws {
    defer { peer.stop() }
    let offer = HTTPResponse.status(
      204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,checksum", "Tus-Checksum-Algorithm": "sha256"])
    let destination = try await UploadDestination.discover(
      peer.endpoint, named: nil, checksum: .sha256, over: Script(offer))
    #expect((destination.uploadProtocol as? Tus)?.trailsChecksums == false && destination.digestsAhead)
  }
}

/// Records where the digest of each body was, and the statuses of the responses.
private final class Seen: Transport {
  enum Way { case none, before, after }
  private struct State {
    var ways: [Way] = []
    var statuses: [Int] = []
    var sent: Int64 = 0
  }
  private let transport: any Transport
  private let drops: Bool
  private let status: Int?
  private let state = Mutex(State())

  /// `dropping`: trailers are dropped; if `status` is given, a request with a trailer gets that status.
  init(_ transport: any Transport, dropping drops: Bool = false, _ status: Int? = nil) {
    self.transport = transport
    self.drops = drops
    self.status = status
  }

  /// The placement of the digest for each POST and PATCH, in order.
  var ways: [Way] { state.withLock { $0.ways } }
  var statuses: [Int] { state.withLock { $0.statuses } }
  var sent: Int64 { state.withLock { $0.sent } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    if ["POST", "PATCH"].contains(request.method) {
      let isBefore = request.headers["Upload-Checksum"] != nil
      state.withLock { $0.ways.append(on.trailers != nil ? .after : isBefore ? .before : .none) }
    }
    var on = on
    if drops, on.trailers != nil {
      if let status { return .status(status) }
      on.trailers = { [:] }
    }
    let told = on.sent
    on.sent = { count in
      self.state.withLock { $0.sent += Int64(count) }
      told(count)
    }
    let answer = try await transport.send(request, body: body, on)
    state.withLock { $0.statuses.append(answer.status) }
    return answer
  }
}
