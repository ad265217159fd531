import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// The server has made a file of the parts, but the journal does not contain yet that the upload is finished.
@Suite(.serialized) struct JoinedPartsTests {
  private static let length: Int64 = 5 << 20
  private let pattern = PatternSource(length: length, seed: 8)

  /// A server with the finished file, and a journal in which its upload in five parts is unfinished: the run ended
  /// after the server deleted the first `deleted` parts.
  private func interrupted(afterDeleting deleted: Int, overwrite: Bool = false) async throws -> Bench {
    let bench = try await Bench(deleting: deleted)
    let uploader = bench.uploader
    let target = uploader.destination.target("video", length: Self.length, overwrite: overwrite)
    let kept = JournalDestination(
      endpoint: uploader.destination.endpoint.text, protocolName: "tus", overwrite: overwrite,
      recipient: uploader.destination.journaledRecipient, account: uploader.destination.journaledAccount)
    let queue = UploadQueue(
      uploader, journal: bench.journal, destinationID: try await bench.journal.destinationID(kept))
    let item = UploadItem(source: pattern, info: pattern.info, identity: "video", target: target)
    let id = try #require(try await queue.claim([item])[0].claim.id)
    _ = try await uploader.upload(pattern, pattern.info, to: target, entry: id)
    bench.journal.released(id)
    #expect(bench.deletions == 5 && bench.arrived(pattern))
    return bench
  }

  /// The state after a kill during the deletion of the parts, or during the comparison of the file, when all parts are
  /// deleted.
  @Test(arguments: [1, 3, 5], [false, true])
  func theNextRunSendsNothingAndDeletesEveryPart(_ deleted: Int, _ overwrite: Bool) async throws {
    let bench = try await interrupted(afterDeleting: deleted, overwrite: overwrite)
    let (sent, deletions) = (bench.sent, bench.deletions)
    #expect(try await bench.journal.only().isJoined)
    _ = try await bench.uploader.upload(pattern, as: "video", overwrite: overwrite)
    #expect(bench.sent == sent && bench.arrived(pattern))
    #expect(bench.deletions == deletions + 5)
    #expect(try await bench.journal.unfinished().isEmpty)
    await bench.journal.close()
  }

  /// A status query asks for the whole upload, of which the server has every byte, and not for the remaining parts.
  @Test(arguments: [1, 3, 5]) func aStatusFindsTheWhole(_ deleted: Int) async throws {
    let bench = try await interrupted(afterDeleting: deleted)
    let session = try #require(try await bench.journal.only().sessionToAsk)
    guard case .finished(let result) = try await Tus().held(by: session, bench.uploader.context()) else {
      Issue.record("the server was asked for parts")
      return
    }
    #expect(result.length == Self.length)
    await bench.journal.close()
  }

  /// The last record of the run may have been lost in a power failure.
  @Test(arguments: [1, 3], [false, true])
  func aWholeThatTheJournalDoesNotKnowIsFoundByItsName(_ deleted: Int, _ overwrite: Bool) async throws {
    let bench = try await interrupted(afterDeleting: deleted, overwrite: overwrite)
    let entry = try await bench.journal.only()
    let session = UploadSession(parts: 1 << 20, length: Self.length)
    bench.journal.opened(entry.id, session)
    for receipt in entry.receipts { bench.journal.receipt(entry.id, receipt) }
    let result = try await bench.uploader.upload(
      pattern, pattern.info, to: bench.uploader.destination.target("video", length: Self.length, overwrite: overwrite),
      resuming: session, receipts: entry.receipts)
    #expect(result.isCompared && bench.arrived(pattern) && bench.unfinished() == 0)
    await bench.journal.close()
  }

  /// The file may have been deleted or replaced since: only a query for its name can tell.
  @Test(arguments: [false, true]) func aWholeThatTheServerHasForgottenIsUploadedAnew(_ isThere: Bool) async throws {
    let bench = try await interrupted(afterDeleting: 5)
    let whole = try #require(try await bench.journal.only().session?.joined)
    try await Tus().abort(whole, bench.uploader.context())
    if !isThere { try bench.remove("video") }
    _ = try await bench.uploader.upload(pattern, as: "video")
    #expect(bench.arrived(pattern) && bench.unfinished() == 0)
    #expect(try await bench.journal.unfinished().isEmpty)
    await bench.journal.close()
  }

  /// Giving up an upload deletes its parts, but not the file that was made of them.
  @Test func givingUpAnUploadDeletesItsPartsAndKeepsTheJoinedFile() async throws {
    let bench = try await interrupted(afterDeleting: 1)
    let deletions = bench.deletions
    let session = try #require(try await bench.journal.only().sessionWithParts)
    #expect(await bench.uploader.discard(session))
    #expect(bench.deletions == deletions + 5 && bench.arrived(pattern))
    #expect(
      await bench.uploader.hasWhole(
        UploadSession(state: [
          "url": try #require(session.joined).text, "length": String(Self.length),
        ])))
    await bench.journal.close()
  }

  /// A server that deletes only the first few parts, each after all five deletions were requested.
  private final class Bench: Sendable {
    let peer: ServedFolder
    let journal: Journal
    let uploader: Uploader
    private let folder: ScratchFolder
    private let counting: CountingTransport
    private let deleted: Monitor<Int>

    init(deleting most: Int) async throws {
      peer = try ServedFolder()
      folder = try ScratchFolder()
      journal = try await Journal(at: folder.path.appending("journal"))
      counting = CountingTransport(SocketTransport(.init(connections: 8)))
      let deleted = Monitor(0)
      self.deleted = deleted
      let transport = FaultyTransport(counting) { _, request in
        guard request.method == "DELETE" else { return .none }
        let number = deleted.update { count in
          count += 1
          return count
        }
        return number > most && number <= 5 ? .answer(.status(503)) : .none
      }
      let destination = try await UploadDestination.discover(peer.endpoint, named: "tus", over: SocketTransport())
      var uploader = Uploader(
        destination, transport: transport, journal: journal,
        retry: RetryPolicy(retries: 3, first: .milliseconds(1), longest: .milliseconds(20)))
      uploader.partsAtOnce = 3
      (uploader.splitting.leastLength, uploader.splitting.smallestPart) = (1 << 20, 1 << 20)
      self.uploader = uploader
    }

    var sent: Int64 { counting.sent }
    /// Number of requests to delete.
    var deletions: Int { deleted.update { $0 } }
    func unfinished() -> Int64 { peer.unfinished() }
    func arrived(_ source: PatternSource) -> Bool {
      peer.contents(of: "video") == source.bytes(count: Int(source.length))
    }
    func remove(_ name: BytePath) throws {
      let path = peer.folder.appending(name)
      try #require(path.withCString { Platform.unlink($0) } == 0)
    }
  }
}
