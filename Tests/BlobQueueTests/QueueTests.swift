import BlobPostgres
import BlobQueue
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import TestSupport
import Testing

@Suite(.enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct QueueTests {
  @Test func eightThreadsNeverClaimOneItemTwice() throws {
    let fixture = try QueueFixture()
    try fixture.add((0..<2000).map { "file \($0)" })
    let claimed = Mutex<[Int64]>([])
    let threads = (0..<8).map { _ in
      Background {
        Result {
          let worker = try fixture.worker()
          defer { worker.close() }
          while case let items = try worker.claim(at: fixture.destination, most: 16), !items.isEmpty {
            claimed.withLock { $0 += items.map(\.id) }
            for item in items { try worker.end(item) }
          }
        }
      }
    }
    for thread in threads { try #require(thread.value()).get() }
    let ids = claimed.withLock { $0 }
    #expect(ids.count == 2000)
    #expect(Set(ids).count == 2000)
    #expect(try fixture.counts() == [2: 2000])
  }

  @Test func itemsAreClaimedInTheirOrder() throws {
    let fixture = try QueueFixture()
    try fixture.add((0..<40).map { "file \($0)" })
    let worker = try fixture.worker()
    defer { worker.close() }
    var paths: [BytePath?] = []
    while case let items = try worker.claim(at: fixture.destination, most: 7), !items.isEmpty {
      paths += items.map { $0.upload.intent?.path }
    }
    #expect(paths == (0..<40).map { BytePath("file \($0)") })
  }

  @Test func largeFilesAreClaimedOneByOne() throws {
    let fixture = try QueueFixture()
    try fixture.add(["a", "b", "c"], length: 1 << 40)
    let worker = try fixture.worker()
    defer { worker.close() }
    #expect(try worker.claim(at: fixture.destination).count == 1)
  }

  @Test func theItemsOfADeadProcessAreTakenOver() throws {
    let fixture = try QueueFixture()
    try fixture.add(["a", "b"])
    // A process that has claimed both and was killed, one second before its lease ends.
    let dead = "dead \(fixture.endpoint)"
    try fixture.ask(
      "INSERT INTO fullbore.queue_workers VALUES ($1, 'there', 1, clock_timestamp() + interval '1 second')", [dead])
    try fixture.ask(
      "UPDATE fullbore.queue_items SET state = 1, worker = $2, fence = 1 WHERE destination = $1::bigint",
      ["\(fixture.destination)", dead])
    let worker = try fixture.worker()
    defer { worker.close() }
    #expect(try worker.claim(at: fixture.destination).isEmpty)
    // One second of the lease, and five.
    let deadline = ContinuousClock.now + .seconds(6)
    var items: [ClaimedItem] = []
    while items.isEmpty, ContinuousClock.now < deadline { items = try worker.claim(at: fixture.destination) }
    #expect(items.count == 2)
    #expect(try fixture.ask("SELECT 1 FROM fullbore.queue_workers WHERE worker = $1", [dead]).isEmpty)
  }

  @Test func aProcessThatWasStoppedChangesNothingAfterItsLease() throws {
    let fixture = try QueueFixture()
    try fixture.add(["a"])
    let zombie = try fixture.worker()
    defer { zombie.close() }
    let item = try #require(try zombie.claim(at: fixture.destination).first)
    zombie.hold([(entry: 7, item: item)])
    // These two statements are a takeover.
    try fixture.ask("DELETE FROM fullbore.queue_workers WHERE worker = $1", [zombie.name])
    try fixture.ask(
      "UPDATE fullbore.queue_items SET state = 0, fence = fence + 1 WHERE worker = $1", [zombie.name])
    let worker = try fixture.worker()
    defer { worker.close() }
    let taken = try #require(try worker.claim(at: fixture.destination).first)
    #expect(throws: JournalError.self) {
      try zombie.store([MirroredUpload(id: 7, upload: item.upload, state: .done)])
    }
    #expect(zombie.isLost)
    #expect(try fixture.counts() == [1: 1])
    try worker.end(taken)
    #expect(try fixture.counts() == [2: 1])
    #expect(throws: JournalError.self) { try zombie.claim(at: fixture.destination) }
  }

  @Test func aLostDatabaseIsAPause() throws {
    let fixture = try QueueFixture()
    try fixture.add((0..<1000).map { "file \($0)" })
    let ended = Mutex<[Int64]>([])
    let isOver = Atomic(false)
    let threads = (0..<3).map { _ in
      Background {
        Result {
          let worker = try fixture.worker()
          defer { worker.close() }
          // An item that a lost answer has left claimed is free after the next claim.
          while try fixture.queue.hasWork(at: fixture.destination) {
            for item in try worker.claim(at: fixture.destination, most: 8) {
              try worker.end(item)
              ended.withLock { $0.append(item.id) }
            }
          }
        }
      }
    }
    let killer = Background {
      Result {
        while !isOver.load(ordering: .relaxed) {
          try fixture.ask(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'fullbore' AND pid <> pg_backend_pid() AND query LIKE '%queue_%' AND random() < 0.2
            """)
        }
      }
    }
    let results = threads.map { $0.value(within: .seconds(60)) }
    isOver.store(true, ordering: .relaxed)
    _ = killer.value()
    for result in results { try #require(result).get() }
    let ids = ended.withLock { $0 }
    #expect(Set(ids).count == ids.count)
    #expect(try fixture.counts() == [2: 1000])
  }

  @Test func sumsAreThoseOfAllItems() throws {
    let fixture = try QueueFixture()
    try fixture.add((0..<300).map { "file \($0)" })
    let worker = try fixture.worker()
    defer { worker.close() }
    let items = try worker.claim(at: fixture.destination, most: 100)
    for item in items.prefix(50) { try worker.end(item) }
    try worker.end(items[50], .failed, error: "no room")
    let sums = try fixture.queue.sums().filter { $0.destination == fixture.destination }
    #expect(sums.map(\.state) == [0, 1, 2, 3])
    #expect(sums.map(\.count) == [200, 49, 50, 1])
    #expect(sums.map(\.bytes) == [2000, 490, 500, 10])
    #expect(try fixture.queue.failures(at: fixture.destination, limit: 5).map(\.message) == ["no room"])
  }
}
