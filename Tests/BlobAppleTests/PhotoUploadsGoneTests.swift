import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Jobs that the system has dropped, jobs whose request it does not tell, and jobs that it never ends.
struct PhotoUploadsGoneTests {
  private let scratch = try! ScratchFolder()
  private let photo = AssetResource(kind: .photo, filename: "IMG_0001.HEIC")

  private func journal(_ name: String = "journal") async throws -> Journal {
    try await Journal(at: scratch.path.appending(BytePath(name)))
  }

  private func system(_ photos: Int, lists: Bool, hidesRequests: Bool = false) -> FakePhotoSystem {
    let system = FakePhotoSystem(limit: 3, listsJobsUnderWay: lists, hidesRequests: hidesRequests)
    for number in 0..<photos { system.add("\(number)", [photo]) }
    return system
  }

  private func run(
    _ system: FakePhotoSystem, _ journal: Journal, now: Int64 = 1000, account: String? = nil
  ) async -> PhotoUploads.Outcome {
    await PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/")!, account: account), ledger: journal.jobs, over: system,
      patience: .seconds(100)
    ) { now }.run()
  }

  /// Before iOS 26.5 the system does not say that it has dropped them.
  @Test func droppedJobsOfOneUserTakeNoPlaceOfTheNext() async throws {
    let (system, journal) = (system(5, lists: false), try await journal())
    #expect(await run(system, journal, account: "anna") == .processing)
    system.dropJobs()
    #expect(await run(system, journal, account: "bert") == .processing)
    #expect(system.underWay.count == 3)
    // Anna's own photos that had no job are registered as well.
    system.dropJobs()
    #expect(await run(system, journal, account: "anna") == .processing)
    #expect(system.underWay.count == 2)
  }

  @Test func jobsWithoutARequestTakeNoPlace() async throws {
    let (system, journal) = (system(6, lists: false, hidesRequests: true), try await journal())
    #expect(await run(system, journal) == .processing)
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal) == .processing)
    #expect(system.state.withLock { $0.made } == 6)
    #expect(system.state.withLock { $0.acknowledged.count } == 3)
  }

  /// It may be that of any photo whose job is open.
  @Test func aJobUnderWayWithoutARequestIsNotMadeTwice() async throws {
    let (system, journal) = (system(1, lists: true, hidesRequests: true), try await journal())
    for now in [1000, 1099] as [Int64] { #expect(await run(system, journal, now: now) == .processing) }
    #expect(system.state.withLock { $0.made } == 1)
  }

  @Test(arguments: [true, false]) func droppedJobsAreRegisteredAgainAtOnceWhenTheAppSaysSo(retried: Bool) async throws {
    let (system, journal) = (system(2, lists: false), try await journal())
    _ = await run(system, journal)
    if retried {
      system.underWay.forEach { system.fail($0) }
      _ = await run(system, journal)
    }
    system.dropJobs()
    #expect(await run(system, journal) == .processing)
    #expect(system.state.withLock { $0.made } == 2, "nothing tells that they are gone")
    try await journal.jobs.forgetOpen()
    #expect(await run(system, journal) == .processing)
    #expect(system.state.withLock { $0.made } == 4)
    #expect(try await journal.jobs.open().map(\.attempts) == [1, 1])
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal) == .completed)
  }

  @Test(arguments: [true, false]) func aPhotoWithAForgottenJobIsNotSentAgainIfTheSystemHasIt(lists: Bool) async throws {
    let (system, journal) = (system(2, lists: lists), try await journal())
    _ = await run(system, journal)
    if !lists { system.underWay.forEach(system.succeed) }
    try await journal.jobs.forgetOpen()
    #expect(await run(system, journal) == (lists ? .processing : .completed))
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal) == .completed)
    #expect(system.state.withLock { $0.made } == 2)
  }

  /// An earlier install of the app has made them, and its journal is lost.
  @Test func ourJobsThatNoJournalKnowsAreCancelled() async throws {
    let system = system(3, lists: true)
    #expect(await run(system, try await journal("lost"), account: "anna") == .processing)
    let journal = try await journal()
    #expect(await run(system, journal, account: "bert") == .processing)
    #expect(system.state.withLock { $0.cancelled } == 3 && system.underWay.count == 3)
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal, account: "bert") == .completed)
  }

  /// They are of another part of the app, or their request is not told.
  @Test(arguments: [true, false]) func jobsThatMayNotBeOursAreNotCancelled(hidesRequests: Bool) async throws {
    let (system, journal) = (system(1, lists: true, hidesRequests: hidesRequests), try await journal())
    for url in ["https://nas.example/0/x", "https://other.example/x"] {
      let version: HTTPHeaders = ["Fullbore-Photo-Version": "1"]
      try system.create(
        photo, of: PhotoAsset(id: "0", version: "1", created: nil),
        to: HTTPRequest("POST", HTTPURL(url)!, url.contains("nas") ? [:] : version))
    }
    #expect(await run(system, journal, now: 1000) == .processing)
    #expect(await run(system, journal, now: 1099) == .processing)
    #expect(system.state.withLock { $0.cancelled } == 0 && system.underWay.count == 3)
  }

  @Test func aJobThatTheSystemNeverEndsIsMadeAnew() async throws {
    let (system, journal) = (system(1, lists: true), try await journal())
    #expect(await run(system, journal, now: 1000) == .processing)
    #expect(await run(system, journal, now: 1099) == .processing)
    #expect(system.state.withLock { $0.cancelled } == 0)
    #expect(await run(system, journal, now: 1100) == .processing)
    #expect(system.state.withLock { $0.cancelled == 1 && $0.made == 2 })
    #expect(try await journal.jobs.open().map(\.attempts) == [1], "it was no failure")
    system.underWay.forEach(system.succeed)
    #expect(await run(system, journal, now: 1101) == .completed)
  }
}
