import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// Calls of PhotoKit that fail for one photo, and what an asset may have that others do not.
struct PhotoUploadsFaultTests {
  private let scratch = try! ScratchFolder()
  private let photo = AssetResource(kind: .photo, filename: "IMG_0001.HEIC")

  private func uploads(
    _ system: any PhotoJobSystem, _ journal: Journal, now: Int64 = 1000,
    path: (@Sendable (PhotoAsset, String) -> String)? = nil
  ) -> PhotoUploads {
    let destination = PhotoJobDestination(HTTPURL("https://nas.example/photos/")!, path: path)
    return PhotoUploads(to: destination, ledger: journal.jobs, over: system, patience: .seconds(100)) { now }
  }

  private func journal() async throws -> Journal { try await Journal(at: scratch.path.appending("journal")) }

  /// The first run registers the other one, and each failure counts once.
  @Test func aPhotoThatCannotBeRegisteredDoesNotHoldUpTheOthers() async throws {
    let (fake, journal) = (FakePhotoSystem(limit: 1), try await journal())
    fake.add("BAD", [photo])
    for number in 0..<3 { fake.add("\(number)", [photo]) }
    let uploads = uploads(FailingPhotoSystem(fake, creating: "BAD"), journal)
    for sent in 1...3 {
      #expect(await uploads.run() == .processing)
      fake.underWay.forEach(fake.succeed)
      #expect(fake.state.withLock { $0.sent.count } == sent)
    }
    #expect(await uploads.run() == .completed)
    let refused = try await journal.jobs.refused()
    #expect(refused.map(\.url) == ["https://nas.example/photos/BAD/IMG_0001.HEIC"])
    #expect(refused.map(\.attempts) == [2])
    #expect(refused.first?.error?.contains("PHPhotosErrorDomain 3302") == true)
  }

  /// Nothing can be registered, so the reason is not the photo.
  @Test func photosAreNotGivenUpIfNoJobCanBeRegistered() async throws {
    let (fake, journal) = (FakePhotoSystem(), try await journal())
    for number in 0..<3 { fake.add("\(number)", [photo]) }
    for day in 0..<5 {
      let system = FailingPhotoSystem(fake, creating: nil)
      guard case .failed = await uploads(system, journal, now: Int64(day) * 86_400).run() else {
        Issue.record("a run in which all failed ended otherwise")
        return
      }
    }
    #expect(try await journal.jobs.refused().isEmpty)
    #expect(try await journal.jobs.waiting().map(\.attempts) == [5, 5, 5])
    // One shows whether photos arrive again.
    #expect(await uploads(fake, journal, now: 5 * 86_400).run() == .processing)
    #expect(fake.underWay.count == 1)
    fake.underWay.forEach(fake.succeed)
    #expect(await uploads(fake, journal, now: 5 * 86_400).run() == .processing)
    #expect(fake.underWay.count == 2)
  }

  @Test func aJobThatCannotBeRetriedIsMadeOnceMore() async throws {
    let (fake, journal) = (FakePhotoSystem(), try await journal())
    fake.add("A", [photo])
    let uploads = uploads(FailingPhotoSystem(fake, creating: "", failsRetries: true), journal)
    for run in 1...3 {
      #expect(await uploads.run() == .processing)
      // A twice, and the others are not held up.
      #expect(fake.state.withLock { $0.made } == 2 * run - 1)
      fake.underWay.forEach { fake.fail($0) }
      fake.add("\(run)", [photo])
    }
    // None has arrived, so it is not given up.
    #expect(try await journal.jobs.waiting().map(\.attempts) == [2])
  }

  // MARK: What an asset may have

  /// The asset's modification date may stay the same when the original takes the place of the stand-in.
  @Test(arguments: [[], [AssetResource(kind: .photoProxy, filename: "IMG_0001.HEIC")]] as [[AssetResource]])
  func anAssetWithoutItsOriginalIsLookedAtAgain(_ resources: [AssetResource]) async throws {
    let (fake, journal) = (FakePhotoSystem(), try await journal())
    fake.add("A", resources)
    #expect(await uploads(fake, journal).run() == .completed)
    fake.state.withLock { $0.assets[0].resources = [photo] }
    #expect(await uploads(fake, journal).run() == .processing)
    #expect(fake.underWay.count == 1)
  }

  @Test func manyFilesOfOnePathAreKeptApart() async throws {
    let (fake, journal) = (FakePhotoSystem(), try await journal())
    for id in ["A/L0/001", "B/L0/001"] {
      fake.add(
        id,
        [
          photo, AssetResource(kind: .pairedVideo, filename: "IMG_0001.MOV"),
          AssetResource(kind: .editedPhoto, filename: "FullSizeRender.heic"),
        ])
    }
    for _ in 1...2 {
      #expect(await uploads(fake, journal) { _, _ in "photo" }.run() == .processing)
      let urls = fake.state.withLock { Set($0.jobs.values.map(\.url)) }
      #expect(urls.count == 6 && fake.underWay.count == 6)
    }
  }

  /// The clock was wrong when the job was registered.
  @Test(arguments: [4_000_000_000, .max, .min] as [Int64])
  func aJobOfAnotherTimeIsNotWaitedForForever(_ time: Int64) async throws {
    let (fake, journal) = (FakePhotoSystem(listsJobsUnderWay: false), try await journal())
    fake.add("A", [photo])
    _ = await uploads(fake, journal, now: time).run()
    fake.underWay.forEach(fake.lose)
    #expect(await uploads(fake, journal, now: 1_800_000_000).run() == .processing)
    #expect(fake.underWay.count == 1)
    // A small step back is none.
    #expect(await uploads(fake, journal, now: 1_799_999_999).run() == .processing)
    #expect(fake.underWay.count == 1)
  }
}

/// The registration of files fails for assets whose identifier begins with `creating`; nil: for all.
struct FailingPhotoSystem: PhotoJobSystem {
  let system: FakePhotoSystem
  let creating: String?
  let failsRetries: Bool

  init(_ system: FakePhotoSystem, creating: String?, failsRetries: Bool = false) {
    (self.system, self.creating, self.failsRetries) = (system, creating, failsRetries)
  }

  var limit: Int { system.limit }
  var listsJobsUnderWay: Bool { system.listsJobsUnderWay }
  func jobs() throws(PhotoJobError) -> [PhotoJob] { try system.jobs() }
  func acknowledge(_ job: PhotoJob) throws(PhotoJobError) { try system.acknowledge(job) }
  func cancel(_ job: PhotoJob) throws(PhotoJobError) { try system.cancel(job) }
  func retry(_ job: PhotoJob, to destination: HTTPRequest?) throws(PhotoJobError) {
    if failsRetries { throw PhotoJobError(.failed, "retry (PHPhotosErrorDomain 3300)") }
    try system.retry(job, to: destination)
  }
  func create(_ resource: AssetResource, of asset: PhotoAsset, to destination: HTTPRequest) throws(PhotoJobError) {
    if creating.map({ !$0.isEmpty && asset.id.hasPrefix($0) }) ?? true {
      throw PhotoJobError(.failed, "register (PHPhotosErrorDomain 3302)")
    }
    try system.create(resource, of: asset, to: destination)
  }
  func assets() throws(PhotoJobError) -> () -> [PhotoAsset] { try system.assets() }
  func resources(of asset: PhotoAsset) throws(PhotoJobError) -> [AssetResource] { try system.resources(of: asset) }
}
