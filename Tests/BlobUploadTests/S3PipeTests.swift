import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// Tests sources of unknown length, which are sent to S3 part by part; `ProtocolTests` has the checks for all
/// protocols.
@Suite struct S3PipeTests: S3Fixture {
  let transport = Self.connections

  /// An uploader with 1 MiB of spool memory, for a server that accepts parts of any size.
  private func uploader(_ peer: S3Peer, retries: Int = 8, port: Int? = nil) async throws -> Uploader {
    var uploader = try await uploader(peer, .init(smallestPart: 1), retries: retries, port: port)
    uploader.spool.memory = 1 << 20
    return uploader
  }

  private func peer(
    isLikeCeph: Bool = false, completingWith text: String? = nil,
    refusing refuse: @escaping @Sendable (S3PeerRequest) -> (Int, String)? = { _ in nil }
  ) -> S3Peer {
    peer { options in
      options.isLikeCeph = isLikeCeph
      options.completionText = text
      options.smallestPart = 1
      options.refuse = { refuse($1) }
    }
  }

  private func pipe(_ length: Int64) -> PatternSource {
    PatternSource(length: length, access: .sequential, knowsLength: false)
  }

  private func parts(_ peer: S3Peer) -> Int { peer.requests.filter { $0.contains("partNumber=") }.count }

  @Test(
    arguments: [
      (0, 0), (1, 0), ((1 << 20) - 1, 0), (1 << 20, 1), ((1 << 20) + 1, 2), (3 << 20, 3), ((7 << 20) / 2, 4),
    ] as [(Int64, Int)])
  func aPipeSmallerThanAPartIsOnePutAndALargerOneIsSentInParts(_ length: Int64, _ wanted: Int) async throws {
    let peer = peer()
    let pipe = pipe(length)
    let progress = UploadProgress()
    let uploader = try await uploader(peer)
    let target = uploader.destination.target("a", length: nil, contentType: "application/x-tar")
    _ = try await uploader.upload(pipe, pipe.info, to: target, progress: progress)
    let object = try #require(peer.objects["a"])
    #expect(object.bytes == pipe.bytes(count: Int(length)) && object.fields["content-type"] == "application/x-tar")
    #expect(parts(peer) == wanted && peer.requests.contains { $0.hasPrefix("POST") } == (wanted > 0))
    #expect(progress.acknowledged == length && progress.sent == length)
    #expect(peer.uploads.isEmpty)
  }

  /// A sequential source cannot be compared, so the name must be free.
  @Test func theErrorSaysThatTheNameOfAPipeInPartsIsTaken() async throws {
    let peer = peer()
    let uploader = try await uploader(peer)
    for _ in 0..<2 {
      let pipe = pipe(3 << 20)
      let target = uploader.destination.target("a", length: nil)
      do {
        _ = try await uploader.upload(pipe, pipe.info, to: target)
      } catch {
        #expect(error.status == 412 && error.message.contains("read once cannot be compared"), "\(error)")
      }
    }
    #expect(parts(peer) == 3, "nothing is sent the second time")
    #expect(peer.uploads.isEmpty)
  }

  /// The object shows that it was made, so the pipe, which cannot be read again, has arrived.
  @Test(arguments: [
    "", "<CompleteMultipartUpl", "<Error><Code>InternalError</Code></Error>",
    "<Error><Code>Unheard</Code></Error>",
  ])
  func aCompletionThatDoesNotSayWhatItMadeIsLookedAt(_ text: String) async throws {
    let peer = peer(completingWith: text)
    peer.change { $0.objects["a"] = S3PeerObject(bytes: [1, 2, 3], tag: "\"x\"") }
    let pipe = pipe(3 << 20)
    var target = try await uploader(peer).destination.target("a", length: nil)
    target.overwrite = true
    _ = try await uploader(peer, retries: 1).upload(pipe, pipe.info, to: target)
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 3 << 20))
    #expect(peer.requests.count { $0.hasPrefix("POST") && !$0.contains("uploads") } == 1)
  }

  /// The source is read on from its offset: the interrupted part comes from the spool.
  @Test func aPartThatIsCutIsSentAgain() async throws {
    let peer = peer()
    let pipe = pipe(5 << 20)
    // The query for the bucket uses its own connection.
    let proxy = ChaosProxy(
      to: peer.port,
      .init([.none, .cutUp(after: 500_000), .cutUp(after: 700_000), .dropResponse(1), .dropResponse(1)]))
    var uploader = try await uploader(peer, port: proxy.port)
    // The parts use one connection, one after the other.
    uploader.transport = SocketTransport(.init(connections: 1, noProgress: .seconds(30)))
    _ = try await uploader.upload(pipe, as: "a")
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 5 << 20) && peer.uploads.isEmpty)
    #expect(proxy.counters.faults >= 2 && proxy.counters.bytesUp < 9 << 20, "\(proxy.counters)")
  }

  @Test func everyPartBacksOffByItself() async throws {
    let seen = Monitor<[String: Int]>([:])
    let peer = peer { request in
      guard let number = request.query("partNumber") else { return nil }
      let count = seen.update { seen in
        seen[number, default: 0] += 1
        return seen[number]!
      }
      return count < 3 ? (503, "SlowDown") : nil
    }
    let pipe = pipe(3 << 20)
    _ = try await uploader(peer, retries: 2).upload(pipe, as: "a")
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 3 << 20))
    #expect(seen.update { $0 } == ["1": 3, "2": 3, "3": 3])
  }

  /// Ceph responds 500 to the second completion.
  @Test(arguments: [true, false]) func aLostAnswerToTheCompletionIsMadeUpFor(_ isLikeCeph: Bool) async throws {
    let peer = peer(isLikeCeph: isLikeCeph)
    let pipe = pipe(3 << 20)
    var uploader = try await uploader(peer)
    // The requests are HEAD, POST, three parts, HEAD, POST.
    uploader.transport = FaultyTransport(transport) { number, _ in number == 6 ? .loseAnswer : .none }
    _ = try await uploader.upload(pipe, as: "a")
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 3 << 20) && peer.uploads.isEmpty)
    // The object may be found before the completion is sent a second time.
    #expect(1...2 ~= peer.requests.filter { $0.hasPrefix("POST") && $0.contains("uploadId=") }.count)
  }

  /// The condition fails because of the object that the first request created; the spool still has the pipe for a
  /// comparison.
  @Test func aLostAnswerToAPutIsMadeUpFor() async throws {
    let peer = peer()
    let pipe = pipe(100_000)
    var uploader = try await uploader(peer)
    uploader.transport = FaultyTransport(transport) { number, _ in number == 0 ? .loseAnswer : .none }
    _ = try await uploader.upload(pipe, as: "a")
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 100_000))
  }

  @Test func aSourceThatFailsLeavesNothingThere() async throws {
    let peer = peer()
    let failing = FaultySource(pipe(5 << 20), .fail(at: 5 << 19, BlobError(.io, "the pipe broke")))
    let error = try await failure { _ = try await uploader(peer).upload(failing, as: "a") }
    #expect(error.side == .source && error.message.contains("the pipe broke"), "\(error)")
    #expect(parts(peer) == 2 && peer.uploads.isEmpty && peer.objects.isEmpty)
  }

  @Test func aRefusedPartLeavesNothingThere() async throws {
    let peer = peer { $0.query("partNumber") == "2" ? (403, "AccessDenied") : nil }
    let error = try await failure { _ = try await uploader(peer).upload(pipe(3 << 20), as: "a") }
    #expect(error.status == 403 && error.recovery == .giveUp, "\(error)")
    #expect(peer.uploads.isEmpty && peer.objects.isEmpty)
  }

  /// The upload can start again as long as the spool has everything that was read.
  @Test(arguments: [("1", true), ("3", false)]) func anUploadThatIsGone(_ part: String, _ begins: Bool) async throws {
    let times = Monitor(0)
    let peer = peer { request in
      guard request.query("partNumber") == part else { return nil }
      let count = times.update { times in
        times += 1
        return times
      }
      return count == 1 ? (404, "NoSuchUpload") : nil
    }
    let pipe = pipe(3 << 20)
    if begins {
      _ = try await uploader(peer).upload(pipe, as: "a")
      #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 3 << 20))
    } else {
      let error = try await failure { _ = try await uploader(peer).upload(pipe, as: "a") }
      #expect(error.recovery == .giveUp && error.message.contains("read once"), "\(error)")
      #expect(peer.objects.isEmpty)
    }
    #expect(peer.uploads.isEmpty)
  }

  /// Keys that may only write cannot list the parts, and none of them could be sent again.
  @Test func aRefusedCompletionIsRepeatedWithoutAList() async throws {
    let completions = Monitor(0)
    let peer = peer { request in
      guard request.query("uploadId") != nil, request.query("partNumber") == nil else { return nil }
      if request.method == "GET" { return (403, "AccessDenied") }
      let count = completions.update { completions in
        completions += 1
        return completions
      }
      return count == 1 ? (409, "ConditionalRequestConflict") : nil
    }
    let pipe = pipe(3 << 20)
    _ = try await uploader(peer).upload(pipe, as: "a")
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 3 << 20) && completions.update { $0 } == 2)
  }

  /// The parts would cost money, and no later run could resume the upload.
  @Test func theDeletionOfPartsIsRepeated() async throws {
    let deletions = Monitor(0)
    let peer = peer { request in
      if request.query("partNumber") == "2" { return (403, "AccessDenied") }
      guard request.method == "DELETE" else { return nil }
      let count = deletions.update { deletions in
        deletions += 1
        return deletions
      }
      return count < 3 ? (503, "SlowDown") : nil
    }
    let error = try await failure { _ = try await uploader(peer).upload(pipe(3 << 20), as: "a") }
    #expect(error.status == 403 && deletions.update { $0 } == 3, "\(error)")
    #expect(peer.uploads.isEmpty && peer.objects.isEmpty)
  }

  @Test func aNameThatIsTakenIsRefusedBeforeAPartIsSent() async throws {
    let peer = peer()
    _ = try await uploader(peer).upload(PatternSource(length: 10), as: "a")
    let error = try await failure { _ = try await uploader(peer).upload(pipe(3 << 20), as: "a") }
    #expect(error.side == .file && error.status == 412, "\(error)")
    #expect(parts(peer) == 0 && peer.uploads.isEmpty)
    _ = try await uploader(peer).upload(pipe(3 << 20), as: "a", overwrite: true)
    #expect(peer.objects["a"]?.bytes.count == 3 << 20)
  }

  /// A part may be larger than the spool memory.
  @Test func theSpoolMayUseAFolder() async throws {
    let peer = peer()
    let folder = try ScratchFolder()
    var uploader = try await uploader(peer)
    uploader.spool = SpoolOptions(memory: 100_000, folder: folder.path)
    uploader.partSize = 1 << 20
    let pipe = pipe(5 << 19)
    uploader.transport = FaultyTransport(transport) { number, _ in number == 3 ? .loseAnswer : .none }
    _ = try await uploader.upload(pipe, as: "a")
    #expect(peer.objects["a"]?.bytes == pipe.bytes(count: 5 << 19))
    #expect(parts(peer) == 4)
  }

  /// The maximum number of parts succeeds, and one byte more fails.
  @Test(arguments: [(3, 100_000), (500, 20)]) func partsAreCounted(_ count: Int, _ size: Int64) async throws {
    for extra: Int64 in [0, 1] {
      let peer = peer()
      var uploader = try await uploader(peer)
      uploader.destination.limits.count = count
      uploader.spool.memory = Int(size)
      let pipe = pipe(Int64(count) * size + extra)
      let upload = { [uploader] in _ = try await uploader.upload(pipe, as: "a") }
      if extra == 0 {
        try await upload()
        #expect(peer.objects["a"]?.bytes == pipe.bytes(count: count * Int(size)))
      } else {
        let error = try await failure(upload)
        #expect(error.side == .file && error.message.contains("\(Int64(count) * size) bytes"), "\(error)")
        #expect(error.message.contains("--spool-memory"), "\(error)")
        #expect(peer.objects.isEmpty)
      }
      #expect(parts(peer) == count && peer.uploads.isEmpty)
    }
  }

  @Test func howMuchItMayBeIsKnownBefore() async throws {
    let peer = peer()
    var uploader = try await uploader(peer, .init())
    #expect(uploader.pipePlan?.partSize == 32 << 20 && uploader.pipePlan?.most == 10_000 * (32 << 20))
    uploader.partSize = 8 << 20
    #expect(uploader.pipePlan?.partSize == 8 << 20)
    uploader.partSize = 64 << 20
    #expect(uploader.pipePlan?.partSize == 32 << 20, "a part that cannot be held")
    uploader.spool.memory = 64 << 20
    #expect(uploader.pipePlan?.partSize == 64 << 20)
    uploader.spool.memory = 1 << 20
    #expect(uploader.pipePlan == nil, "nor can one that is large enough")
    uploader.spool.folder = "/tmp"
    uploader.partSize = nil
    #expect(uploader.pipePlan?.partSize == 512 << 20)
    #expect(try #require(uploader.pipePlan?.most) == 10_000 * (512 << 20))
  }
}
