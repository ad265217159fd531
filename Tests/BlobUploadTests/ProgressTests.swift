import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

@Suite struct ProgressTests {
  @Test func aRepeatedAttemptMovesThePositionBackButStaysTraffic() {
    let totals = UploadTotals()
    let one = UploadProgress(totals: totals)
    let two = UploadProgress(totals: totals)
    one.advance(by: 100)
    two.advance(by: 50)
    one.settle(at: 30)
    one.advance(by: 70)
    #expect(one.sent == 100)
    #expect(one.acknowledged == 30)
    #expect(totals.sent == 220)
    #expect(totals.acknowledged == 30)
  }

  @Test func bytesOfAnEarlierRunAreNotCountedInTheTotals() {
    let totals = UploadTotals()
    let progress = UploadProgress(totals: totals)
    progress.resume(at: 1000)
    progress.advance(by: 24)
    progress.settle(at: 1024)
    #expect(progress.resumed == 1000)
    #expect(progress.sent == 1024)
    #expect(totals.sent == 24)
    #expect(totals.acknowledged == 24)
  }

  /// The server already has the whole file, as a query shows: no bytes are sent, and none count as sent.
  @Test func comparedBytesAreNotCountedAsSent() async throws {
    let peer = try ServedFolder()
    let transport = SocketTransport()
    let source = PatternSource(length: 1000)
    var uploadProtocol = PlainPut()
    let plain = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: uploadProtocol, limits: PartLimits(firstPart: .max))
    _ = try await Uploader(plain, transport: transport).upload(source, as: "stored")
    uploadProtocol.asksFirst = true
    let asking = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: uploadProtocol, limits: PartLimits(firstPart: .max))
    let totals = UploadTotals()
    let progress = UploadProgress(totals: totals)
    _ = try await Uploader(asking, transport: transport).upload(
      source, source.info, to: asking.target("stored", length: 1000), progress: progress)
    #expect(progress.resumed == 1000 && progress.sent == 1000)
    #expect(totals.sent == 0 && totals.acknowledged == 0)
  }

  /// A caller polls the progress of one upload. An upload that was finished before does not start.
  @Test(arguments: [false, true]) func anUploadGivesItsProgressWhenItStarts(hasJournal: Bool) async throws {
    let (peer, folder) = (try ServedFolder(), try ScratchFolder())
    let journal = hasJournal ? try await Journal(at: folder.path.appending("journal")) : nil
    let destination = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    let uploader = Uploader(destination, transport: SocketTransport(), journal: journal)
    let started = Mutex<[UploadProgress]>([])
    for _ in 1...2 {
      try await uploader.upload(PatternSource(length: 1000), as: "film.mov") { progress in
        started.withLock { $0.append(progress) }
      }
    }
    let acknowledged = started.withLock { $0.map(\.acknowledged) }
    #expect(acknowledged == (hasJournal ? [1000] : [1000, 1000]))
  }
}
