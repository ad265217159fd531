import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Jobs whose results come after they were believed to be lost, or contradict what the server has. Before iOS 26.5 the
/// system does not list the jobs under way.
struct PhotoUploadsLateTests {
  private let scratch = try! ScratchFolder()
  private static let url = "https://nas.example/A/IMG_0001.HEIC"

  private func run(_ system: FakePhotoSystem, _ journal: Journal, now: Int64) async -> PhotoUploads.Outcome {
    await PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/")!), ledger: journal.jobs, over: system,
      patience: .seconds(100)
    ) { now }.run()
  }

  private func start() async throws -> (FakePhotoSystem, Journal) {
    let system = FakePhotoSystem(listsJobsUnderWay: false)
    system.add("A", [AssetResource(kind: .photo, filename: "IMG_0001.HEIC")], created: 1_700_000_000)
    return (system, try await Journal(at: scratch.path.appending("journal")))
  }

  @Test func aLateSuccessIsThatOfItsOwnVersion() async throws {
    let (system, journal) = try await start()
    _ = await run(system, journal, now: 1000)
    let first = try #require(system.underWay.first)
    system.edit(0)
    // The job of version 1 counts as lost, and version 2 is registered.
    #expect(await run(system, journal, now: 1200) == .processing)
    #expect(system.underWay.count == 2)
    system.succeed(first)
    #expect(await run(system, journal, now: 1210) == .processing)
    // The server refuses version 2, because its job did not expect a file. The retry replaces version 1.
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal, now: 1220) == .processing)
    let retried = system.state.withLock { $0.jobs.values.first?.request.headers }
    #expect(retried?["If-Match"] == "*" && retried?["X-OC-MTime"] == "1700000000")
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal, now: 1230) == .completed)
    #expect(try await journal.jobs.job(at: Self.url)?.done == "2")
    #expect(system.state.withLock { $0.held[Self.url] } == "2")
  }

  /// Both replace an earlier version, so the server takes them in any order. Only the newest is sent again.
  @Test func theNewestVersionIsSentAgainIfTheOrderOfArrivalIsUnknown() async throws {
    let (system, journal) = try await start()
    _ = await run(system, journal, now: 1000)
    system.underWay.forEach(system.succeed)
    system.edit(0)
    _ = await run(system, journal, now: 1010)
    let second = try #require(system.underWay.first)
    system.edit(0)
    _ = await run(system, journal, now: 1200)
    let third = try #require(system.underWay.last)
    #expect(second != third)
    system.succeed(third)
    #expect(await run(system, journal, now: 1210) == .completed)
    system.succeed(second)
    #expect(system.state.withLock { $0.held[Self.url] } == "2")
    #expect(await run(system, journal, now: 1220) == .processing)
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal, now: 1230) == .completed)
    #expect(system.state.withLock { $0.held[Self.url] } == "3")
  }

  /// The server's answer was lost, and the system has reported a failure. Nothing tells that the file there is ours, so
  /// it is replaced only when the app says so.
  @Test(arguments: [true, false]) func aFileThatMayBeOursIsReplacedIfTheAppSaysSo(replacing: Bool) async throws {
    let (system, journal) = try await start()
    for now in [1000, 1010] as [Int64] {
      _ = await run(system, journal, now: now)
      system.underWay.forEach(system.failAfterArrival)
    }
    #expect(await run(system, journal, now: 1020) == .processing)
    system.edit(0)
    for now in [1030, 1040] as [Int64] {
      // Another photo arrives, so the server is there.
      if now == 1040 { system.add("B", [AssetResource(kind: .photo, filename: "IMG_0001.HEIC")]) }
      #expect(await run(system, journal, now: now) == .processing)
      system.underWay.forEach(system.succeed)
    }
    #expect(await run(system, journal, now: 1050) == .completed)
    let refused = try #require(try await journal.jobs.refused().first)
    #expect(refused.error == "the server refuses it" && system.state.withLock { $0.held[Self.url] } == "1")
    try await journal.jobs.tryAgain(refused, replacing: replacing)
    #expect(await run(system, journal, now: 1060) == .processing)
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal, now: 1070) == (replacing ? .completed : .processing))
    #expect(system.state.withLock { $0.held[Self.url] } == (replacing ? "2" : "1"))
  }

  /// At rest, what the ledger calls done is what the server has.
  @Test(arguments: 1...60) func everyPhotoThatTheJournalCallsDoneIsAtTheServer(seed: Int) async throws {
    var random = SplitMix64(seed: UInt64(seed))
    let (system, journal) = try await start()
    system.add("B", [AssetResource(kind: .photo, filename: "IMG_0001.HEIC")])
    var now: Int64 = 1000
    for _ in 0..<40 {
      now += [10, 10, 150].randomElement(using: &random)!
      _ = await run(system, journal, now: now)
      if Int.random(in: 0...2, using: &random) == 0 { system.edit(Int.random(in: 0...1, using: &random)) }
      for id in system.underWay.shuffled(using: &random) {
        switch Int.random(in: 0...9, using: &random) {
        case 0...1: system.succeed(id)
        case 2: system.fail(id)
        case 3: system.lose(id)
        default: break
        }
      }
    }
    var outcome = PhotoUploads.Outcome.processing
    for _ in 0..<300 where outcome != .completed || !system.underWay.isEmpty {
      system.underWay.shuffled(using: &random).forEach(system.succeed)
      // Photos that have failed wait for a day at most.
      now += 100_000
      outcome = await run(system, journal, now: now)
    }
    #expect(outcome == .completed)
    for asset in system.state.withLock({ $0.assets.map(\.asset) }) {
      let url = "https://nas.example/\(asset.id)/IMG_0001.HEIC"
      let job = try #require(try await journal.jobs.job(at: url))
      #expect(job.isSettled(asset.version))
      if job.state == .idle { #expect(system.state.withLock { $0.held[url] } == asset.version) }
    }
  }

  @Test func resourcesOfTheSameKindAndNameAreDistinguished() async throws {
    let (system, journal) = (FakePhotoSystem(), try await Journal(at: scratch.path.appending("journal")))
    let unknown = AssetResource(kind: nil, filename: "data.bin")
    let resources = [unknown, AssetResource(kind: .photo, filename: "IMG_0001.HEIC"), unknown, unknown].numbered()
    #expect(resources.map(\.ordinal) == [0, 0, 1, 2])
    #expect(Set(resources).count == 4)
    #expect(resources.numbered() == resources)
    let identities = resources.map { PhotoIdentity(asset: "A", resource: $0) }
    #expect(identities.map { PhotoIdentity($0.path) } == identities)
    system.add("A", resources)
    #expect(await run(system, journal, now: 1000) == .processing)
    #expect(Set(system.state.withLock { $0.jobs.values.map(\.resource) }) == Set(resources))
  }
}
