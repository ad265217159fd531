import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// A proxy refuses bodies above a size with 413.
@Suite struct BodyLimitTests {
  private let journalFolder = try! ScratchFolder()

  private func uploader(
    _ name: String, _ peer: ServedFolder, _ transport: any Transport, wholeUpTo: Int64 = 1 << 20
  ) async throws -> Uploader {
    let uploadProtocol: any UploadProtocol =
      name == "tus" ? Tus(wholeUpTo: wholeUpTo) : IETFResumable(wholeUpTo: wholeUpTo)
    return Uploader(
      try await .discover(peer.endpoint, speaking: uploadProtocol, over: SocketTransport()), transport: transport,
      retry: RetryPolicy(retries: 2, first: .milliseconds(1)))
  }

  @Test(arguments: ["tus", "resumable"]) func partsShrinkUntilTheyGetThrough(_ name: String) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let most: Int64 = 1_000_000
    let bodies = Bodies(SocketTransport()) { $0 ?? .max > most ? 413 : nil }
    let uploader = try await uploader(name, peer, bodies)
    let pattern = PatternSource(length: 3_000_000, seed: 1)
    _ = try await uploader.upload(pattern, as: "video")
    #expect(peer.contents(of: "video") == pattern.bytes(count: 3_000_000))
    #expect(bodies.refusals == 2, "1 MiB is too large too")
    #expect(bodies.lengths.compactMap { $0 }.max()! > most)
    let second = bodies.refusals
    _ = try await uploader.upload(pattern, as: "another")
    #expect(bodies.refusals == second, "the next file of this run begins with what gets through")
  }

  /// A small file is sent with the request that creates the upload, and this request is refused.
  @Test(arguments: ["tus", "resumable"]) func aCreationThatIsTooLargeIsCreatedEmpty(_ name: String) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let bodies = Bodies(SocketTransport()) { $0 ?? .max > 300_000 ? 413 : nil }
    let uploader = try await uploader(name, peer, bodies)
    let pattern = PatternSource(length: 900_000, seed: 2)
    _ = try await uploader.upload(pattern, as: "photo")
    #expect(peer.contents(of: "photo") == pattern.bytes(count: 900_000))
    #expect(bodies.refusals == 1 && bodies.lengths.prefix(2) == [900_000, 0])
  }

  @Test func theNextRunKnowsWhatGetsThroughToThatHost() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let pattern = PatternSource(length: 3_000_000, seed: 3)
    for name in ["first", "second"] {
      let journal = try await Journal(at: journalFolder.path.appending("journal"))
      let bodies = Bodies(SocketTransport()) { $0 ?? .max > 1_000_000 ? 413 : nil }
      var uploader = try await uploader("tus", peer, bodies)
      uploader.journal = journal
      _ = try await uploader.upload(pattern, as: BytePath(name))
      #expect(peer.contents(of: BytePath(name)) == pattern.bytes(count: 3_000_000))
      #expect(bodies.refusals == (name == "first" ? 2 : 0))
      #expect(try await journal.hosts.largestBody(at: "http://elsewhere.example:80") == nil)
      await journal.close()
    }
  }

  @Test func aPipesPartsShrinkToo() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let bodies = Bodies(SocketTransport()) { $0 ?? 0 > 100_000 ? 413 : nil }
    var uploader = try await uploader("tus", peer, bodies)
    uploader.destination.uploadProtocol = Tus(checksum: .sha1)
    uploader.spool = SpoolOptions(memory: 600_000)
    let pattern = PatternSource(length: 1_000_000, seed: 4)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 1_000_000))
  }

  @Test func anUploadIsGivenUpIfTheServerRefusesEveryBody() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let bodies = Bodies(SocketTransport()) { $0 ?? .max > 10 ? 413 : nil }
    let error = await #expect(throws: UploadError.self) {
      try await uploader("tus", peer, bodies).upload(PatternSource(length: 3_000_000), as: "video")
    }
    #expect(error?.status == 413 && error?.recovery == .giveUp)
    #expect(bodies.refusals <= 4)
  }

  @Test func limitsAreFoundInFewSteps() throws {
    let destination = UploadDestination(endpoint: host, uploadProtocol: Tus(), limits: PartLimits(firstPart: 4 << 20))
    #expect(destination.shrink(below: .max, to: nil) == 64 << 20)
    #expect(destination.shrink(below: 1 << 30, to: nil) == 64 << 20, "one that was on its way before")
    #expect(destination.shrink(below: 64 << 20, to: nil) == 16 << 20)
    #expect(destination.shrink(below: 16 << 20, to: 5_000_000) == 5_000_000, "what it says it takes")
    #expect(destination.currentLimits.largest == 5_000_000 && destination.currentLimits.firstPart == 4 << 20)
    #expect(destination.shrink(below: 5_000_000, to: 1000) == 1000)
    #expect(destination.shrink(below: 1000, to: nil) == nil)
    let plain = UploadDestination(endpoint: host, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    _ = plain.shrink(below: .max, to: nil)
    #expect(plain.currentLimits.firstPart == .max, "what goes in one request cannot be cut")
  }
}
