import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Foundation
import Synchronization
import Testing

@testable import BlobApple

/// Apple's background uploader for photo libraries, with a stand-in for PhotoKit.
struct PhotoUploadsTests {
  private let scratch = try! ScratchFolder()
  private let destination = PhotoJobDestination(
    HTTPURL("https://nas.example/photos/")!, headers: { ["Authorization": "Bearer secret"] })
  private let live = [
    AssetResource(kind: .photo, filename: "IMG_0001.HEIC"), AssetResource(kind: .pairedVideo, filename: "IMG_0001.MOV"),
  ]

  private func uploads(_ system: FakePhotoSystem, _ journal: Journal, now: Int64 = 1000) -> PhotoUploads {
    PhotoUploads(
      to: destination, ledger: KilledLedger(journal: journal, kills: system.kills), over: system,
      patience: .seconds(100)
    ) { now }
  }

  private func journal() async throws -> Journal { try await Journal(at: scratch.path.appending("journal")) }

  @Test func eachFileOfAnAssetIsSentOnceAndThenNeverAgain() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A1B2/L0/001", live, created: 1_700_000_000)
    let uploads = uploads(system, journal)
    #expect(await uploads.run() == .processing)
    #expect(await uploads.run() == .processing)
    #expect(system.underWay.count == 2, "nothing is registered twice")
    let requests = system.state.withLock { $0.jobs.values.map { $0.request } }
    #expect(
      requests.map { $0.url.text }.sorted() == [
        "https://nas.example/photos/A1B2/IMG_0001.HEIC", "https://nas.example/photos/A1B2/IMG_0001.MOV",
      ])
    for request in requests {
      #expect(request.method == "POST")
      #expect(request.headers["Authorization"] == "Bearer secret")
      #expect(request.headers["X-OC-MTime"] == "1700000000")
      #expect(request.headers["If-Match"] == nil)
    }
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .completed)
    #expect(system.state.withLock { $0.jobs.isEmpty && $0.acknowledged.count == 2 })
    #expect(await self.uploads(system, journal).run() == .completed)
    #expect(system.state.withLock { $0.made } == 2)
  }

  @Test func anEditedPhotoIsSentAgainInPlaceOfTheOldOne() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [live[0]])
    let uploads = uploads(system, journal)
    _ = await uploads.run()
    // While the job is under way, the newer version waits: there is one job for a URL at a time.
    system.edit(0)
    #expect(await uploads.run() == .processing)
    #expect(system.underWay.count == 1)
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .processing)
    #expect(system.state.withLock { $0.made } == 2)
    #expect(system.state.withLock { $0.jobs.values.first?.request.headers["If-Match"] } == "*")
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .completed)
    #expect(try await journal.jobs.job(at: "https://nas.example/photos/A/IMG_0001.HEIC")?.done == "2")
  }

  @Test func aFailedJobIsRetriedOnceAndThenGivenUpWithItsReason() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [live[0]])
    let uploads = uploads(system, journal)
    _ = await uploads.run()
    system.underWay.forEach { system.fail($0) }
    #expect(await uploads.run() == .processing)
    #expect(system.underWay.count == 1)
    // Another photo arrives, so the server is there.
    system.add("B", [live[0]])
    #expect(await uploads.run() == .processing)
    system.succeed(system.underWay[1])
    let retried = system.state.withLock { $0.retried }
    #expect(retried.count == 1 && retried[0]?.headers["Authorization"] == "Bearer secret")
    system.underWay.forEach { system.fail($0, "the server said 409") }
    #expect(await uploads.run() == .completed)
    let refused = try await journal.jobs.refused()
    #expect(refused.map { $0.error } == ["the server said 409"])
    #expect(refused.map { $0.attempts } == [2])
    #expect(system.state.withLock { $0.jobs.isEmpty && $0.made == 2 })
    // An edit is another version, with attempts of its own.
    system.edit(0)
    #expect(await uploads.run() == .processing)
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .completed)
    #expect(try await journal.jobs.refused().isEmpty)
  }

  @Test func aLostJobIsMadeOnceMoreAndThenGivenUp() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [live[0]])
    let uploads = uploads(system, journal)
    for made in 1...2 {
      #expect(await uploads.run() == .processing)
      #expect(system.state.withLock { $0.made } == made)
      if made == 1 { system.underWay.forEach(system.lose) }
    }
    system.add("B", [live[0]])
    #expect(await uploads.run() == .processing)
    system.lose(system.underWay[0])
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .completed)
    #expect(try await journal.jobs.refused().map(\.attempts) == [2])
    #expect(system.state.withLock { $0.made } == 3)
  }

  /// Before iOS 26.5, nothing tells a lost job from one under way but time.
  @Test func aJobThatCannotBeListedIsWaitedFor() async throws {
    let (system, journal) = (FakePhotoSystem(listsJobsUnderWay: false), try await journal())
    system.add("A", [live[0]])
    _ = await uploads(system, journal).run()
    #expect(await uploads(system, journal, now: 1099).run() == .processing)
    system.underWay.forEach(system.lose)
    #expect(await uploads(system, journal, now: 1099).run() == .processing)
    #expect(system.state.withLock { $0.made } == 1)
    #expect(await uploads(system, journal, now: 1100).run() == .processing)
    #expect(system.state.withLock { $0.made } == 2)
  }

  @Test(arguments: [true, false]) func neverMoreJobsAreMadeThanTheSystemTakes(lists: Bool) async throws {
    let (system, journal) = (FakePhotoSystem(limit: 5, listsJobsUnderWay: lists), try await journal())
    for number in 0..<8 { system.add("\(number)", live) }
    let uploads = uploads(system, journal)
    var runs = 0
    while await uploads.run() != .completed {
      runs += 1
      try #require(runs < 100)
      #expect(system.underWay.count == min(5, 16 - 2 * runs + 2))
      system.underWay.prefix(2).forEach(system.succeed)
    }
    #expect(system.state.withLock { $0.mostJobs == 5 && $0.acknowledged.count == 16 })
    // Before iOS 26.5, only the system knows how many jobs it has, and a refusal ends the run.
    #expect(system.state.withLock { $0.refusals } <= (lists ? 0 : runs))
  }

  /// Another part of the app may have jobs, which the ledger does not know.
  @Test func theSystemsOwnLimitEndsARun() async throws {
    let (system, journal) = (FakePhotoSystem(limit: 3, listsJobsUnderWay: false), try await journal())
    for number in 0..<3 { system.add("\(number)", [live[0]]) }
    let other = AssetResource(kind: .photo, filename: "other")
    try system.create(
      other, of: PhotoAsset(id: "0", version: "1", created: nil), to: HTTPRequest("POST", HTTPURL("https://x/y")!))
    let uploads = uploads(system, journal)
    #expect(await uploads.run() == .processing)
    #expect(system.state.withLock { $0.refusals } == 1)
    #expect(try await journal.jobs.open().count == 2, "what was refused was not registered")
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .processing)
    #expect(system.state.withLock { $0.acknowledged.count } == 3, "the unknown job is acknowledged, too")
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .completed)
  }

  @Test func aTerminatedRunEndsAndTheNextOneGoesOn() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    for number in 0..<4 { system.add("\(number)", [live[0]]) }
    let ending = EndingPhotoSystem(system, at: "2")
    let uploads = PhotoUploads(to: destination, ledger: journal.jobs, over: ending, patience: .seconds(100)) { 1000 }
    ending.end.withLock { $0 = { uploads.terminate() } }
    #expect(await uploads.run() == .processing)
    #expect(system.state.withLock { $0.made } == 2)
    #expect(await uploads.run() == .processing)
    #expect(system.state.withLock { $0.made } == 4)
  }

  @Test func anErrorOfPhotoKitOrTheJournalFailsTheRun() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [live[0]])
    system.kills.start(endingAfter: 0)
    #expect(await uploads(system, journal).run() == .failed("the extension was killed"))
    system.kills.start(endingAfter: nil)
    await journal.close()
    guard case .failed(let message) = await uploads(system, journal).run() else {
      Issue.record("a closed journal was no error")
      return
    }
    #expect(message.contains("closed"))
    #expect(system.state.withLock { $0.made } == 0)
  }

  // MARK: Destinations

  @Test func credentialsGoToTheFolderOfTheDestinationOnly() throws {
    let session = try #require(destination.session())
    for url in [
      "https://nas.example/other/x", "https://nas.example:8443/photos/x", "http://nas.example/photos/x",
      "https://nas.example.evil/photos/x", "https://evil.example/photos/x",
    ] {
      #expect(destination.request(HTTPURL(url)!, of: session, replaces: false) == nil, "\(url)")
    }
    #expect(destination.request(HTTPURL("https://nas.example/photos/x")!, of: session, replaces: false) != nil)
  }

  @Test func aJobOfAnEarlierDestinationKeepsItsOwnRequest() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [live[0]])
    _ = await uploads(system, journal).run()
    system.underWay.forEach { system.fail($0) }
    let other = PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://other.example/")!, headers: { ["Authorization": "Bearer other"] }),
      ledger: journal.jobs, over: system, patience: .seconds(100)
    ) { 1000 }
    #expect(await other.run() == .processing)
    #expect(system.state.withLock { $0.retried.map { $0 == nil } } == [true])
  }

  @Test(arguments: [
    ("../../etc/passwd", "__/__/etc/passwd"), ("/a//b/", "a/b"), ("..", "__"), (".", "_"), ("", "_"), ("///", "_"),
    ("a?b#c%2F", "a%3Fb%23c%252F"), ("Caf\u{e9} \u{0}.HEIC", "Caf%C3%A9%20_.HEIC"),
    ("//evil.example/x", "evil.example/x"),
  ])
  func aNameNeverLeadsOutOfTheFolder(path: String, expected: String) throws {
    let destination = PhotoJobDestination(HTTPURL("https://nas.example/photos")!, path: { _, _ in path })
    let url = destination.urls(PhotoAsset(id: "A/L0/001", version: "1", created: nil), "x")[0]
    let folder = HTTPURL("https://nas.example/photos")!.folder.text
    #expect(url.text == folder + expected)
    #expect(destination.request(url, of: try #require(destination.session()), replaces: false) != nil)
  }

  /// The system tells the URLs of its jobs as Foundation writes them.
  @Test(arguments: ["https://nas.example/B\u{fc}cher/", "https://NAS.example:443/x|y/", "https://nas.example/100%/"])
  func jobsAreFoundByTheURLAsFoundationWritesIt(folder: String) throws {
    let destination = PhotoJobDestination(try #require(HTTPURL(folder)))
    for name in ["a b.HEIC", "\u{fc}.HEIC", "%41|[].HEIC"] {
      let url = destination.urls(PhotoAsset(id: "A/L0/001", version: "1", created: nil), name)[0]
      let told = try #require(URL(string: url.text)).absoluteString
      #expect(PhotoUploads.key(PhotoJob(id: "1", url: told, state: .succeeded) { _ in nil }) == url.text)
    }
  }

  @Test func twoFilesOfOnePathAreKeptApart() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    for id in ["A/L0/001", "B/L0/001"] { system.add(id, [live[0]]) }
    let uploads = PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/photos/")!, path: { _, name in name }), ledger: journal.jobs,
      over: system, patience: .seconds(100)
    ) { 1000 }
    for _ in 1...2 {
      #expect(await uploads.run() == .processing)
      #expect(
        system.state.withLock { $0.jobs.values.map { $0.url }.sorted() } == [
          "https://nas.example/photos/B/IMG_0001.HEIC", "https://nas.example/photos/IMG_0001.HEIC",
        ])
    }
  }
}

/// Calls `end` once, when the files of an asset are asked for.
private final class EndingPhotoSystem: PhotoJobSystem {
  let system: FakePhotoSystem
  let asset: String
  let end = Mutex<(@Sendable () -> Void)?>(nil)

  init(_ system: FakePhotoSystem, at asset: String) { (self.system, self.asset) = (system, asset) }

  var limit: Int { system.limit }
  var listsJobsUnderWay: Bool { system.listsJobsUnderWay }
  func jobs() throws(PhotoJobError) -> [PhotoJob] { try system.jobs() }
  func acknowledge(_ job: PhotoJob) throws(PhotoJobError) { try system.acknowledge(job) }
  func cancel(_ job: PhotoJob) throws(PhotoJobError) { try system.cancel(job) }
  func retry(_ job: PhotoJob, to destination: HTTPRequest?) throws(PhotoJobError) {
    try system.retry(job, to: destination)
  }
  func create(_ resource: AssetResource, of asset: PhotoAsset, to destination: HTTPRequest) throws(PhotoJobError) {
    try system.create(resource, of: asset, to: destination)
  }
  func assets() throws(PhotoJobError) -> () -> [PhotoAsset] { try system.assets() }
  func resources(of asset: PhotoAsset) throws(PhotoJobError) -> [AssetResource] {
    if asset.id == self.asset { end.withLock { $0.take() }?() }
    return try system.resources(of: asset)
  }
}
