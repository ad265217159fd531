import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

// What servers demand, and what they say on the way.
extension PipeTests {
  /// The name is refused when the server learns the length, and this is final.
  @Test(arguments: names) func aTakenNameEndsAPipeAtOnce(_ name: String) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let asked = Monitor<[String]>([])
    let uploader = try await self.uploader(
      name, peer, CountingTransport(SocketTransport()) { request in asked.update { $0.append(request.method) } })
    _ = try await uploader.upload(PatternSource(length: 1000), as: "stream")
    let before = asked.update { $0.count }
    let error = await #expect(throws: UploadError.self) {
      try await uploader.upload(piped(PatternSource(length: 300_000, seed: 2)), as: "stream")
    }
    #expect(error?.status == 409 && error?.recovery == .giveUp, "\(error as Any)")
    #expect(error?.message.contains("gave up after") == false, "\(error as Any)")
    let again = asked.update { $0.dropFirst(before).count { $0 == "PATCH" } }
    #expect(again <= 2, "the bytes, and where they end: \(asked.update { $0 })")
  }

  /// Interim responses about bytes that were never sent drop no bytes from the spool.
  @Test func interimOffsetsBeyondWhatWasSentAreNotBelieved() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    var uploader = try await self.uploader("resumable", peer, Vouching(SocketTransport(), ahead: 1 << 50))
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 3_000_000, seed: 11)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 3_000_000))
  }

  /// For example a rendering: it is read from start to end, and can be generated again.
  @Test func aSourceThatCanBeReadAgainIsSentFromTheStartAfterAFailure() async throws {
    let pattern = PatternSource(length: 3_000_000, seed: 8, access: .sequential, knowsLength: false)
    let (error, _, peer) = try await push(
      pattern, "put", spool: SpoolOptions(memory: 1 << 20), from: pattern, .init([.cutUp(after: 2_500_000)]))
    #expect(error == nil)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 3_000_000))
  }

  @Test func aLostSessionBeginsAnewWithIt() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let transport = FaultyTransport(SocketTransport()) { number, _ in
      number == 6 ? .answer(HTTPResponse(head: HTTPHead(status: 404, headers: [:]), body: [])) : .none
    }
    var uploader = try await self.uploader("tus", peer, transport)
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 1_000_000, seed: 9, access: .sequential, knowsLength: false)
    _ = try await uploader.upload(pattern, as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 1_000_000))
  }

  /// The standard status is 411; some servers use 422 or 501.
  @Test(arguments: [411, 422, 501]) func aServerThatWantsLengthsGetsThem(_ status: Int) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let bodies = Bodies(SocketTransport()) { $0 == nil ? status : nil }
    var uploader = try await self.uploader("tus", peer, bodies)
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 250_000, seed: 8)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 250_000))
    #expect(bodies.lengths == [0, nil, 200_000, 50_000])
  }

  /// For PUT, or a server without deferred lengths: a pipe that fits into the spool is measured first.
  @Test(arguments: [(411, false), (501, false), (0, true)])
  func aPipeThatFitsGetsItsLengthFirst(_ status: Int, _ isTus: Bool) async throws {
    let folder = try ScratchFolder()
    for (length, spool, fits) in [
      (99_999, SpoolOptions(memory: 100_000), true), (100_000, SpoolOptions(memory: 100_000), false),
      (0, SpoolOptions(memory: 100_000), true), (500_000, SpoolOptions(memory: 100_000, folder: folder.path), true),
    ] {
      let peer = try ServedFolder()
      defer { peer.stop() }
      let bodies = Bodies(SocketTransport()) { $0 == nil ? status : nil }
      var uploader = try await self.uploader(isTus ? "tus" : "put", peer, bodies)
      uploader.destination.limits.needsLength = isTus
      uploader.spool = spool
      let pattern = PatternSource(length: Int64(length), seed: 10)
      do {
        _ = try await uploader.upload(piped(pattern), as: "stream")
        #expect(peer.contents(of: "stream") == pattern.bytes(count: length))
        #expect(fits && bodies.lengths.last != .some(nil))
      } catch {
        #expect(!fits && error.recovery == .giveUp && error.side != .source, "\(length): \(error)")
      }
    }
  }

  /// The digest is in the header section, so each part is read ahead.
  @Test func aPipeCarriesChecksums() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let seen = Mutex<[String]>([])
    let transport = CountingTransport(SocketTransport()) { request in
      if let sum = request.headers["Upload-Checksum"] { seen.withLock { $0.append(sum) } }
    }
    var uploader = try await self.uploader("tus", peer, transport)
    uploader.destination.uploadProtocol = Tus(wholeUpTo: 1000, checksum: .sha1)
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 250_000, seed: 9)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 250_000))
    #expect(seen.withLock { $0.count } == 2)
  }

  /// An offset in an interim response drops the acknowledged bytes from the spool.
  @Test func interimOffsetsLetGoOfWhatHasArrived() async throws {
    let pattern = PatternSource(length: 1000, access: .sequential, knowsLength: false)
    let source = SpooledSource(pattern, pattern.info, SpoolOptions(memory: 100))
    #expect(try await source.look(from: 0, 80, nil) == 80)
    source.acknowledge(60)
    #expect(source.first == 60)
    #expect(try await source.look(from: 60, 2000, nil) == 940, "fewer only where the source ends")
    #expect(source.first == 900, "what does not fit makes way")
  }
}
