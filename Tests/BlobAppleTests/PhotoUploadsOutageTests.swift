import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// A server or a photo library that fails for a while, beside photos that fail for good.
struct PhotoUploadsOutageTests {
  private let scratch = try! ScratchFolder()
  private let photo = AssetResource(kind: .photo, filename: "IMG_0001.HEIC")

  private func run(
    _ system: any PhotoJobSystem, _ journal: Journal, now: Int64
  ) async -> PhotoUploads.Outcome {
    await PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/photos/")!), ledger: journal.jobs, over: system,
      patience: .seconds(100)
    ) { now }.run()
  }

  private func journal() async throws -> Journal { try await Journal(at: scratch.path.appending("journal")) }

  @Test(arguments: [1, 31, 32, 40, 100]) func photosThatCannotBeRegisteredDoNotHoldUpTheOthers(bad: Int) async throws {
    let (fake, journal) = (FakePhotoSystem(limit: 50), try await journal())
    for number in 0..<bad { fake.add("BAD\(number)", [photo]) }
    for number in 0..<20 { fake.add("\(number)", [photo]) }
    let system = FailingPhotoSystem(fake, creating: "BAD")
    var outcome = PhotoUploads.Outcome.processing
    var runs = 0
    while outcome != .completed {
      runs += 1
      try #require(runs < 60, "\(outcome), sent \(fake.state.withLock { $0.sent.count })")
      outcome = await run(system, journal, now: Int64(runs) * 300)
      fake.underWay.forEach(fake.succeed)
      if runs == 20 { #expect(fake.state.withLock { $0.sent.count } == 20) }
      // Other photos are taken meanwhile.
      if runs > 20, runs % 5 == 0 { fake.add("late \(runs)", [photo]) }
    }
    #expect(try await journal.jobs.refused().count == bad)
  }

  /// Nothing shows that it is this photo which is at fault, so it is tried for days.
  @Test func aLonePhotoThatCannotBeRegisteredIsGivenUpInTheEnd() async throws {
    let (fake, journal) = (FakePhotoSystem(limit: 50), try await journal())
    for number in 0..<20 { fake.add("\(number)", [photo]) }
    let system = FailingPhotoSystem(fake, creating: "BAD")
    _ = await run(system, journal, now: 0)
    fake.underWay.forEach(fake.succeed)
    #expect(await run(system, journal, now: 1) == .completed)
    fake.add("BAD", [photo])
    var now: Int64 = 1000
    var failed = 0
    var outcome = PhotoUploads.Outcome.processing
    while outcome != .completed {
      outcome = await run(system, journal, now: now)
      if case .failed = outcome { failed += 1 }
      now += 3600
      try #require(now < 60 * 86_400)
    }
    #expect(now > 3 * 86_400 && failed < 50)
    #expect(try await journal.jobs.refused().map(\.url) == ["https://nas.example/photos/BAD/IMG_0001.HEIC"])
  }

  /// A run every five minutes. Without an answer from the server, all jobs fail at once.
  @Test func anOutageOfTheServerGivesUpNoPhoto() async throws {
    let (fake, journal) = (FakePhotoSystem(limit: 50), try await journal())
    for number in 0..<300 { fake.add("\(number)", [photo]) }
    var now: Int64 = 0
    for _ in 0..<200 {
      #expect(await run(fake, journal, now: now) == .processing)
      fake.underWay.forEach { fake.fail($0, "Could not connect to the server (NSURLErrorDomain -1004)") }
      now += 300
    }
    #expect(try await journal.jobs.refused().isEmpty)
    // 50 at first, and then a probe in each run.
    #expect(fake.state.withLock { $0.made } < 300)
    var runs = 0
    while await run(fake, journal, now: now) != .completed {
      fake.underWay.forEach(fake.succeed)
      now += 300
      runs += 1
      try #require(runs < 30)
    }
    #expect(fake.state.withLock { $0.sent.count } == 300)
    #expect(try await journal.jobs.refused().isEmpty)
  }

  /// The server takes all photos but one.
  @Test func aPhotoThatTheServerRefusesIsGivenUpWhileOthersArrive() async throws {
    let (fake, journal) = (FakePhotoSystem(limit: 5), try await journal())
    for number in 0..<20 { fake.add("\(number)", [photo]) }
    var now: Int64 = 0
    var outcome = PhotoUploads.Outcome.processing
    while outcome != .completed {
      outcome = await run(fake, journal, now: now)
      for id in fake.underWay {
        if fake.state.withLock({ $0.jobs[id]?.asset }) == "0" { fake.fail(id, "409") } else { fake.succeed(id) }
      }
      now += 300
      try #require(now < 300 * 30)
    }
    #expect(try await journal.jobs.refused().map(\.error) == ["409"])
    #expect(fake.state.withLock { $0.sent.count } == 19)
  }

  // MARK: The end of a run

  /// The system calls `terminate` before it suspends the extension, which may then be called again in the same process.
  @Test func anEndThatComesAfterARunDoesNotConcernTheNextOne() async throws {
    let fake = FakePhotoSystem(limit: 5)
    for number in 0..<20 { fake.add("\(number)", [photo]) }
    let uploads = PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/photos/")!), journal: scratch.path.appending("journal"),
      over: fake)
    for run in 1...4 {
      #expect(await uploads.run() == .processing)
      uploads.terminate()
      fake.underWay.forEach(fake.succeed)
      #expect(fake.state.withLock { $0.sent.count } == 5 * run)
    }
    #expect(await uploads.run() == .completed)
  }
}
