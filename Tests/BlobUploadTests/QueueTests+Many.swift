import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

// Many files, cancellation, and files that arrived wrong.
extension QueueTests {
  @Test func onlySoManyLargeOnesAreUnderWayAtOnce() async throws {
    let desk = try await Desk()
    let gauge = Gauge(gathers: 3)
    var queue = desk.queue(gauge)
    (queue.largeJobs, queue.largeFrom) = (3, 100)
    #expect(try await desk.run(queue, (0..<40).map { "\($0)" }).sent == 40)
    #expect(gauge.most == 3)
  }

  @Test func cancellingEndsEverythingAndGivesTheClaimsBack() async throws {
    let desk = try await Desk()
    let gauge = Gauge(stalls: true)
    let queue = desk.queue(gauge)
    let names = (0..<300).map { "\($0)" }
    let task = Task { try await desk.run(queue, names) }  // ends below
    await gauge.reach(64)
    let start = ContinuousClock.now
    task.cancel()
    let error = await #expect(throws: UploadError.self) { _ = try await task.value }
    #expect(ContinuousClock.now - start < .seconds(10))
    #expect(error?.side == .cancelled)
    #expect(gauge.now == 0)
    #expect(try await desk.run(desk.queue(Script(.status(201))), names).sent == 300)
  }

  @Test func aFileThatFailedVerificationIsSentAgainByTheNextRun() async throws {
    let desk = try await Desk()
    // The server reports that it has all bytes, and returns none.
    var queue = desk.queue(Script(.created, .at(1000), .status(200)), Tus())
    queue.verify = true
    let first = try await desk.run(queue, ["a"])
    #expect(first.error("a")?.message.contains("has only 0 bytes of 1000") == true)
    let script = Script(.created, .at(1000))
    #expect(try await desk.run(desk.queue(script, Tus()), ["a"]).sent == 1)
    #expect(script.methods == ["POST", "PATCH"])
  }

  @Test func thousandsOfTinyFilesArrive() async throws {
    let peer = try ServedFolder()
    let desk = try await Desk()
    let transport = SocketTransport()
    let destination = try await UploadDestination.discover(peer.endpoint, named: nil, over: transport)
    let queue = UploadQueue(Uploader(destination, transport: transport), journal: desk.journal, destinationID: 0)
    let names = (0..<2000).map { "tiny-\($0)" }
    #expect(try await desk.run(queue, names, length: 50).sent == 2000)
    #expect(Set(peer.names().map(\.description)) == Set(names))
    let pattern = PatternSource(length: 50)
    #expect(names.allSatisfy { peer.contents(of: BytePath($0)) == pattern.bytes(count: 50) })
    peer.stop()
  }
}
