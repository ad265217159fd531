import BlobQueue
import BlobTesting
import BlobUpload
import Blobs
import TestSupport
import Testing

@Suite(.enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct QueueAddingTests {
  private let fixture: QueueFixture
  private let worker: QueueWorker

  init() throws {
    fixture = try QueueFixture()
    worker = try fixture.worker()
  }

  private func push(_ intents: [JournalIntent]) throws -> (QueueAddition, push: Int64) {
    let name = "me \(UInt64.random(in: 0 ... .max))"
    let push = try fixture.queue.beginPush("/folder", to: fixture.destination, by: name)
    return (try fixture.queue.add(intents, push: push, to: fixture.destination), push)
  }

  @Test func whatIsDoneIsNotAddedAgain() throws {
    defer { worker.close() }
    try fixture.add(["a"])
    for item in try worker.claim(at: fixture.destination) { try worker.end(item) }
    let (same, _) = try push([fixture.intent("a"), fixture.intent("b")])
    #expect(same.done == [0])
    #expect(try fixture.counts() == [0: 1, 2: 1])
    let (changed, _) = try push([fixture.intent("a", version: "2")])
    #expect(changed.done.isEmpty)
    #expect(try fixture.counts() == [0: 2])
    // The worker has claimed an item before this one, so the other one comes first.
    let items = try worker.claim(at: fixture.destination) + worker.claim(at: fixture.destination)
    #expect(items.map(\.upload.validator?.version) == ["1", "2"])
  }

  @Test func aPushWaitsForFilesThatAnotherHasAdded() throws {
    defer { worker.close() }
    try fixture.add(["a"])
    var (added, push) = try push([fixture.intent("a")])
    #expect(added.others.count == 1)
    #expect(try fixture.queue.isUnfinished(push, &added.others))
    for item in try worker.claim(at: fixture.destination) { try worker.end(item) }
    #expect(try !fixture.queue.isUnfinished(push, &added.others))
  }

  @Test func anotherFileForAPlaceIsRefusedWhileTheFirstIsNotThere() throws {
    defer { worker.close() }
    let (added, _) = try push([fixture.intent("a"), fixture.intent("a", source: "/elsewhere/a")])
    #expect(added.refused.map(\.index) == [1])
    for item in try worker.claim(at: fixture.destination) { try worker.end(item) }
    let (second, _) = try push([fixture.intent("a", source: "/elsewhere/a")])
    #expect(second.refused.isEmpty)
    #expect(try worker.claim(at: fixture.destination).first?.upload.intent?.source == "/elsewhere/a")
  }

  @Test func aFileThatIsNotHereWaitsForTheMachineThatHasIt() throws {
    defer { worker.close() }
    try fixture.add(["a"])
    let there = try SharedQueue(fixture.database.url, on: "there")
    let other = try fixture.worker(there)
    defer { other.close() }
    let item = try #require(try other.claim(at: fixture.destination).first)
    other.hold([(entry: 1, item: item)])
    #expect(try other.giveUp(1, "no such file"))
    #expect(try other.claim(at: fixture.destination).isEmpty)
    #expect(try !there.hasWork(at: fixture.destination))
    #expect(try worker.claim(at: fixture.destination).map(\.id) == [item.id])
  }

  @Test func aFileThatAnotherMachinePushesAsWellIsNoLongerBound() throws {
    defer { worker.close() }
    try fixture.add(["a"])
    let there = try SharedQueue(fixture.database.url, on: "there")
    let other = try fixture.worker(there)
    defer { other.close() }
    let item = try #require(try other.claim(at: fixture.destination).first)
    other.hold([(entry: 1, item: item)])
    #expect(try other.giveUp(1, "no such file"))
    let push = try there.beginPush("/folder", to: fixture.destination, by: other.name)
    #expect(try there.add([fixture.intent("a")], push: push, to: fixture.destination).others == [item.id])
    #expect(try other.claim(at: fixture.destination).map(\.id) == [item.id])
  }

  @Test func failedFilesAreTriedAgainOnce() throws {
    defer { worker.close() }
    let push = try fixture.add(["a", "b"])
    for item in try worker.claim(at: fixture.destination) { try worker.end(item, .failed, error: "no room") }
    #expect(try fixture.queue.failures(of: push, limit: 10).count == 2)
    #expect(try fixture.queue.retryFailed(at: fixture.destination) == 2)
    #expect(try worker.claim(at: fixture.destination).count == 2)
  }
}
