import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Several users of one app whose photos go to one folder's URL.
struct PhotoUploadsAccountTests {
  private let scratch = try! ScratchFolder()
  private let photo = AssetResource(kind: .photo, filename: "IMG_0001.HEIC")
  private let url = "https://nas.example/photos/A/IMG_0001.HEIC"

  private func uploads(_ account: String?, _ system: FakePhotoSystem, _ journal: Journal) -> PhotoUploads {
    PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/photos/")!, account: account) {
        ["Authorization": "Bearer \(account ?? "")"]
      }, ledger: KilledLedger(journal: journal, kills: system.kills), over: system, patience: .seconds(100)
    ) { 1000 }
  }

  private func journal() async throws -> Journal { try await Journal(at: scratch.path.appending("journal")) }

  @Test func whatOneHasSentDoesNotCountForAnother() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [photo])
    for (number, account) in (["anna", "bob", nil] as [String?]).enumerated() {
      // Each account has a server of its own behind the URL.
      system.state.withLock { $0.held = [:] }
      #expect(await uploads(account, system, journal).run() == .processing)
      #expect(system.state.withLock { $0.made } == number + 1)
      let request = try #require(system.state.withLock { $0.jobs.values.first?.request })
      #expect(request.headers["Authorization"] == "Bearer \(account ?? "")")
      #expect(request.headers["If-Match"] == nil)
      #expect(request.headers["Content-Type"] == "image/heic")
      #expect(request.headers["Fullbore-Photo-Account"]?.utf8.count == (account == nil ? nil : 32))
      system.underWay.forEach(system.succeed)
      #expect(await uploads(account, system, journal).run() == .completed)
    }
    for account in ["anna", "bob", nil] as [String?] {
      #expect(await uploads(account, system, journal).run() == .completed)
    }
    #expect(system.state.withLock { $0.made } == 3)
    #expect(try await journal.job(at: url)?.done == "1")
    let anna = JournalJob.digest(ofAccount: "anna")
    #expect(try await journal.job(at: url, account: anna)?.account == anna)
  }

  /// The system has a job of a user who has signed out.
  @Test(arguments: [true, false]) func aJobOfAnotherAccountKeepsItsRequest(succeeds: Bool) async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [photo])
    _ = await uploads("anna", system, journal).run()
    let job = try #require(system.underWay.first)
    if succeeds { system.succeed(job) } else { system.fail(job) }
    #expect(await uploads("bob", system, journal).run() == .processing)
    #expect(system.state.withLock { $0.retried.map { $0 == nil } } == (succeeds ? [] : [true]))
    #expect(system.state.withLock { $0.made } == 2, "the photo of the present user is registered")
    system.state.withLock { $0.held = [:] }
    system.underWay.forEach(system.succeed)
    #expect(await uploads("bob", system, journal).run() == .completed)
    #expect(await uploads("anna", system, journal).run() == .completed)
    #expect(system.state.withLock { $0.made } == 2)
  }

  /// Photos that wait for one account say nothing of the server of another one.
  @Test func photosOfAnotherAccountThatWaitAreNoOutage() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    for name in ["A", "B", "C", "D"] { system.add(name, [photo]) }
    let anna = uploads("anna", system, journal)
    for _ in 0..<2 {
      _ = await anna.run()
      system.underWay.forEach { system.fail($0) }
    }
    _ = await anna.run()
    #expect(try await journal.waitingJobs().count == 4)
    _ = await uploads("bob", system, journal).run()
    #expect(system.underWay.count == 4)
    #expect(try await journal.waitingJobs().count == 4)
  }
}
