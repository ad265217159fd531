import BlobCrypto
import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// A file that a Fullbore server already has with the same bytes is neither sent again nor counted as sent.
@Suite struct ExistingFilesTests {
  private static let lengths: [Int64] = [0, 1000, 200 << 10, 300 << 10, 5 << 20]
  private let names = ["empty", "small", "medium", "second", "large"]

  private func queue(
    _ desk: Desk, _ peer: ServedFolder, _ uploadProtocol: String?, checksum: Digest.Algorithm? = nil
  ) async throws -> (UploadQueue, Recorder) {
    let recorder = Recorder(SocketTransport())
    var queue = desk.queue(recorder)
    queue.uploader.destination = try await UploadDestination.discover(
      peer.endpoint, named: uploadProtocol, checksum: checksum, asksForNames: true, over: recorder)
    queue.jobs = 1
    return (queue, recorder)
  }

  /// A server that does not offer another digest is asked for the one that all of them tell.
  @Test func theDigestOfSealedFilesIsOneThatTheServerTells() throws {
    let existing = ExistingFiles()
    #expect(existing.digestOfSealed == nil)
    existing.note(tellsDigests: true)
    #expect(existing.digestOfSealed == .sha256)
    existing.note(tellsDigests: true, offered: [.sha256, .md5])
    #expect(existing.digestOfSealed == .sha256)
    existing.note(tellsDigests: true, offered: [.sha256, .xxh128])
    #expect(existing.digestOfSealed == (Digest.Algorithm("xxh128") ?? .sha256))
    existing.note(tellsDigests: false, offered: [.xxh128])
    #expect(existing.digestOfSealed == nil)
  }

  @Test(arguments: [nil, "tus", "resumable", "put"])
  func aNewJournalSendsNothingAgain(_ uploadProtocol: String?) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let firstDesk = try await Desk()
    let (queue, recorder) = try await queue(firstDesk, peer, uploadProtocol)
    #expect(try await firstDesk.run(queue, names, lengths: Self.lengths).sent == names.count)
    // A PUT without a modification time needs a query that confirms it, once per folder. An empty file cannot confirm
    // it.
    let confirmations = uploadProtocol == "put" ? 2 : 0
    #expect(
      recorder.count("HEAD") <= 1 + confirmations, "a new tree is not asked for, but for its one large file")

    let desk = try await Desk()
    let (again, second) = try await self.queue(desk, peer, uploadProtocol)
    let outcomes = try await desk.run(again, names, lengths: Self.lengths)
    for (name, length) in zip(names, Self.lengths) {
      guard case .sent(let result, from: let start) = outcomes[name] else {
        Issue.record("\(name): \(String(describing: outcomes[name]))")
        continue
      }
      #expect(result.wasThere || result.isCompared, "\(name)")
      #expect(start == length, "\(name)")
    }
    #expect(again.totals.acknowledged == 0)
    #expect(again.totals.sent <= 1000 + 200 << 10, "only what is cheaper to send than to ask for, and the first one")
    #expect(second.count("HEAD") >= 2)
  }

  @Test(arguments: [nil, "tus", "resumable", "put"])
  func otherBytesOfTheSameLengthAreRefused(_ uploadProtocol: String?) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let desk = try await Desk()
    let (queue, _) = try await queue(desk, peer, uploadProtocol)
    #expect(try await desk.run(queue, ["large"], length: 5 << 20).sent == 1)
    let other = try await Desk()
    let (again, _) = try await self.queue(other, peer, uploadProtocol)
    let outcomes = try await other.run(again, ["large"], length: 5 << 20, seed: 7)
    #expect(outcomes.error("large")?.status == 409, "\(String(describing: outcomes["large"]))")
    #expect(peer.contents(of: "large") == PatternSource(length: 5 << 20).bytes(count: 5 << 20))
  }

  /// The journal alone is not sufficient: only a digest, or the bytes, show that the name has other bytes.
  @Test(arguments: [nil, "tus", "resumable", "put"])
  func aCheckComparesDigestsIfTheServerReportsThem(_ uploadProtocol: String?) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let desk = try await Desk()
    var (queue, _) = try await queue(desk, peer, uploadProtocol)
    #expect(try await desk.run(queue, ["same", "other"]).sent == 2)
    let put = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    _ = try await Uploader(put, transport: SocketTransport()).upload(
      PatternSource(length: 1000, seed: 1), as: "other", overwrite: true)
    queue.check = true
    let outcomes = try await desk.run(queue, ["same", "other"])
    guard case .doneBefore(.digest) = outcomes["same"] else {
      return #expect(Bool(false), "\(String(describing: outcomes["same"]))")
    }
    #expect(outcomes.error("other")?.status == 409, "\(String(describing: outcomes["other"]))")
  }

  /// `If-Match: *` requires an existing file, so the server is first queried for one.
  @Test(arguments: [false, true]) func aFileThatMayOverwriteIsSentOnce(_ isThere: Bool) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let length: Int64 = 5 << 20
    if isThere {
      let put = UploadDestination(
        endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
      _ = try await Uploader(put, transport: SocketTransport()).upload(PatternSource(length: length, seed: 7), as: "a")
    }
    let desk = try await Desk()
    let (queue, recorder) = try await queue(desk, peer, "put")
    #expect(try await desk.run(queue, ["a"], length: length, overwrite: true).sent == 1)
    #expect(recorder.count("PUT") == 1)
    #expect(queue.totals.sent == length)
    #expect(peer.contents(of: "a") == PatternSource(length: length).bytes(count: Int(length)))
  }

  @Test func aServerWithoutDigestsIsComparedByLength() async throws {
    let desk = try await Desk()
    _ = try await desk.run(desk.queue(Script(.status(201))), ["a"])
    var queue = desk.queue(Script(.status(200, ["Content-Length": "1000"])))
    queue.check = true
    guard case .doneBefore(.length) = try await desk.run(queue, ["a"])["a"] else {
      return #expect(Bool(false), "compared by length")
    }
  }

  /// The server reads a file to compute its digest only for HEAD; for GET it returns only a digest that is already
  /// known.
  @Test func theServerComputesADigestThatTheClientDidNotSend() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let put = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    let source = PatternSource(length: 100_000)
    _ = try await Uploader(put, transport: SocketTransport()).upload(source, as: "a")
    let context = UploadContext(transport: SocketTransport(), endpoint: peer.endpoint, traits: UploadTraits())
    let url = peer.endpoint.folder.appending(pathBytes: "a".utf8)
    func told(_ method: String, _ wanted: String) async throws -> String? {
      let response = try await context.send(HTTPRequest(method, url, ["Want-Repr-Digest": wanted]))
      #expect(response.status == 200 && response.headers["Content-Length"] == "100000")
      return response.headers["Repr-Digest"]
    }
    #expect(try await told("GET", "sha-512=1") == nil)
    #expect(try await told("HEAD", "md5=1") == nil)
    for (wanted, algorithm) in [("sha-256=1", Digest.Algorithm.sha256), ("sha-512=1, sha-256=0", .sha512)] {
      let digest = Digest(algorithm)
      let bytes = source.bytes(count: 100_000)
      bytes.withUnsafeBytes { digest.update($0) }
      #expect(try await told("HEAD", wanted) == DigestField.text([algorithm: digest.value()]))
      #expect(try await told("GET", wanted) == DigestField.text([algorithm: digest.value()]), "it is known now")
    }
  }
}

/// An object was replaced by other bytes of the same length.
extension ExistingFilesTests {
  @Suite struct OfS3: S3Fixture {
    let transport = Self.connections

    @Test func aCheckComparesTheChecksumOfAnObject() async throws {
      let peer = peer()
      let uploader = try await uploader(peer)
      let source = PatternSource(length: 1000)
      let target = uploader.destination.target("a", length: 1000)
      #expect(try await uploader.evidence(of: source, source.info, target, location: nil) == nil)
      _ = try await uploader.upload(source, as: "a")
      #expect(try await uploader.evidence(of: source, source.info, target, location: nil) == .digest)
      let other = PatternSource(length: 1000, seed: 1)
      #expect(try await uploader.evidence(of: other, other.info, target, location: nil) == nil)
      withExtendedLifetime(peer) {}
    }
  }
}

/// Counts the requests to a server.
private final class Recorder: Transport {
  private let transport: any Transport
  private let methods = Mutex<[String]>([])

  init(_ transport: any Transport) { self.transport = transport }

  func count(_ method: String) -> Int { methods.withLock { $0.filter { $0 == method }.count } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    methods.withLock { $0.append(request.method) }
    return try await transport.send(request, body: body, on)
  }
}
