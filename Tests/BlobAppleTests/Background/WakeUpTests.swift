import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

@Suite(.timeLimit(.minutes(1))) struct WakeUpTests {
  private let calls = Counter()

  @Test func theHandlerIsCalledOnceWhenAllIsQuiet() {
    let wakeUp = WakeUp()
    wakeUp.enter()
    wakeUp.handle(within: .seconds(60)) { [calls] in calls.add() }
    wakeUp.deliveredAll()
    #expect(calls.value == 0, "an upload is still working")
    wakeUp.leave()
    #expect(calls.value == 1)
    wakeUp.enter()
    wakeUp.deliveredAll()
    wakeUp.leave()
    #expect(calls.value == 1)
  }

  @Test func theHandlerMayComeAfterTheEvents() {
    let wakeUp = WakeUp()
    wakeUp.deliveredAll()
    wakeUp.handle(within: .seconds(60)) { [calls] in calls.add() }
    #expect(calls.value == 1)
    wakeUp.handle(within: .seconds(60)) { [calls] in calls.add() }
    #expect(calls.value == 1, "these events were told before")
    wakeUp.deliveredAll()
    #expect(calls.value == 2)
  }

  /// Events were delivered while the app ran, for example after its user had opened it.
  @Test func eventsWithoutAHandlerDoNotEndALaterWakeUp() {
    let time = Mutex(ContinuousClock.now)
    let wakeUp = WakeUp(now: { time.withLock { $0 } })
    wakeUp.deliveredAll()
    time.withLock { $0 += WakeUp.handingOver + .seconds(1) }
    wakeUp.handle(within: .seconds(60)) { [calls] in calls.add() }
    #expect(calls.value == 0, "the events of this wake-up were not delivered yet")
    wakeUp.deliveredAll()
    #expect(calls.value == 1)
  }

  @Test func eventsOfAnEarlierHandlerDoNotEndTheNextWakeUp() {
    let (wakeUp, second) = (WakeUp(), Counter())
    wakeUp.enter()
    wakeUp.handle(within: .seconds(60)) { [calls] in calls.add() }
    wakeUp.deliveredAll()
    wakeUp.handle(within: .seconds(60)) { second.add() }
    #expect(calls.value == 1)
    wakeUp.leave()
    #expect(second.value == 0, "the events of this wake-up were not delivered yet")
    wakeUp.deliveredAll()
    #expect(second.value == 1)
  }

  @Test func theHandlerIsCalledInTimeWhateverHappens() async throws {
    let wakeUp = WakeUp()
    wakeUp.enter()
    wakeUp.handle(within: .milliseconds(1)) { [calls] in calls.add() }
    try await eventually { [calls] in calls.value == 1 }
    wakeUp.deliveredAll()
    wakeUp.leave()
    #expect(calls.value == 1)
  }

  /// Uploads still work when the time is up, and the events come before or after that.
  @Test(arguments: [true, false]) func eventsOfALateHandlerDoNotEndTheNextWakeUp(comeBefore: Bool) async throws {
    let wakeUp = WakeUp()
    wakeUp.enter()
    wakeUp.handle(within: .milliseconds(20)) { [calls] in calls.add() }
    if comeBefore { wakeUp.deliveredAll() }
    try await eventually { [calls] in calls.value == 1 }
    if !comeBefore { wakeUp.deliveredAll() }
    wakeUp.leave()
    wakeUp.handle(within: .seconds(60)) { [calls] in calls.add() }
    #expect(calls.value == 1, "the events of the next wake-up were not delivered yet")
    wakeUp.deliveredAll()
    #expect(calls.value == 2)
  }

  @Test func anUploadIsOverBeforeTheSystemMaySuspendTheApp() async throws {
    let server = try ServedFolder()
    let source = PatternSource(length: 16_000, seed: 2)
    let daemon = Daemon(isHeld: true)
    let phone = try Phone(server.endpoint, IETFResumable(), daemon: daemon)
    let first = try await phone.launch()
    try await first.add(source, as: "film.mov")
    try await eventually { daemon.started.count == 1 }
    first.life.kill()
    daemon.isHeld = false
    try await eventually { daemon.isIdle }

    let second = try await phone.launch(["film.mov": source])
    let (calls, uploader) = (calls, second.uploader)
    #expect(await uploader.handleEvents(identifier: "another") { calls.add() } == false)
    #expect(await uploader.handleEvents(identifier: "test") { calls.add() })
    try await eventually { calls.value == 1 }
    #expect(uploader.uploads.isEmpty && phone.names.isEmpty)
    #expect(try await second.journal.entries(.done, limit: 1).count == 1)
    #expect(server.has("film.mov", source))
  }
}

private final class Counter: Sendable {
  private let count = Atomic(0)
  var value: Int { count.load(ordering: .relaxed) }
  func add() { count.add(1, ordering: .relaxed) }
}
