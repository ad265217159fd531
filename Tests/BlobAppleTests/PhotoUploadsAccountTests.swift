import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Platform
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

  @Test func aPhotoSentByOneAccountIsSentAgainForAnother() async throws {
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
    #expect(try await journal.jobs.job(at: url)?.done == "1")
    let anna = JournalJob.digest(ofAccount: "anna")
    #expect(try await journal.jobs.job(at: url, account: anna)?.account == anna)
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
    #expect(try await journal.jobs.waiting().count == 4)
    _ = await uploads("bob", system, journal).run()
    #expect(system.underWay.count == 4)
    #expect(try await journal.jobs.waiting().count == 4)
  }

  /// Nothing promises that the system gives back all fields of a request.
  @Test(arguments: [true, false]) func aJobWithoutItsFieldsIsThatOfTheOneAccount(succeeds: Bool) async throws {
    let fields: Set = ["Fullbore-Photo-Account", "Fullbore-Photo-Version"]
    let (system, journal) = (FakePhotoSystem(hiddenFields: fields), try await journal())
    system.add("A", [photo])
    #expect(await uploads("anna", system, journal).run() == .processing)
    #expect(await uploads("anna", system, journal).run() == .processing)
    if !succeeds {
      system.underWay.forEach { system.fail($0) }
      #expect(await uploads("anna", system, journal).run() == .processing)
      #expect(system.state.withLock { $0.retried.first??.headers["Authorization"] } == "Bearer anna")
    }
    system.underWay.forEach(system.succeed)
    #expect(await uploads("anna", system, journal).run() == .completed)
    #expect(await uploads("anna", system, journal).run() == .completed)
    #expect(system.state.withLock { $0.made } == 1)
    #expect(try await journal.jobs.job(at: url, account: JournalJob.digest(ofAccount: "anna"))?.done == "1")
  }

  /// A request with a version and no account was made for no account, by an app that has lost its journal.
  @Test func aJobOfNoAccountIsNotThatOfAnAccount() async throws {
    let (system, journal) = (FakePhotoSystem(hiddenFields: ["Fullbore-Photo-Account"]), try await journal())
    system.add("A", [photo])
    #expect(await uploads("anna", system, journal).run() == .processing)
    system.underWay.forEach(system.succeed)
    _ = await uploads("anna", system, journal).run()
    #expect(try await journal.jobs.job(at: url, account: JournalJob.digest(ofAccount: "anna"))?.done == nil)
  }

  // MARK: Users who sign in and out while the process lives

  private func uploads(
    _ system: FakePhotoSystem, _ journal: Journal, session: @escaping @Sendable () -> PhotoJobSession?
  ) -> PhotoUploads {
    PhotoUploads(
      to: PhotoJobDestination(HTTPURL("https://nas.example/photos/")!, session: session), ledger: journal.jobs,
      over: system,
      patience: .seconds(100)
    ) { 1000 }
  }

  private static func session(of account: String) -> PhotoJobSession {
    PhotoJobSession(account: account, headers: ["Authorization": "Bearer \(account)"])
  }

  @Test func withoutAUserNothingIsRegistered() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    system.add("A", [photo])
    let user = Monitor<String?>(nil)
    let uploads = uploads(system, journal) { user.update(waking: .none) { $0 }.map(Self.session) }
    #expect(await uploads.run() == .completed)
    #expect(system.state.withLock { $0.made } == 0)
    user.update { $0 = "anna" }
    #expect(await uploads.run() == .processing)
    #expect(system.state.withLock { $0.made } == 1)
    // The system ends the job while nobody is signed in.
    user.update { $0 = nil }
    system.underWay.forEach(system.succeed)
    #expect(await uploads.run() == .completed)
    user.update { $0 = "anna" }
    #expect(await uploads.run() == .completed)
    let anna = JournalJob.digest(ofAccount: "anna")
    #expect(try await journal.jobs.job(at: url, account: anna)?.done == "1")
  }

  /// No photo goes with the account of one user and the token of another, whenever the user changes.
  @Test func aRunEndsWhenTheUserChanges() async throws {
    var (change, isDone) = (-1, false)
    while !isDone {
      change += 1
      let (system, journal) = (
        FakePhotoSystem(), try await Journal(at: scratch.path.appending(BytePath("journal \(change)")))
      )
      for name in ["A", "B", "C"] { system.add(name, [photo]) }
      let calls = Monitor(0)
      let uploads = uploads(system, journal) { [change] in
        let number = calls.update { count in
          count += 1
          return count
        }
        return Self.session(of: number <= change ? "anna" : "bob")
      }
      #expect(await uploads.run() == .processing)
      isDone = system.state.withLock { $0.made } == 3 && calls.update(waking: .none) { $0 } <= change
      #expect(await uploads.run() == .processing)
      let ofBob = JournalJob.digest(ofAccount: "bob")
      for job in system.state.withLock({ Array($0.jobs.values) }) {
        let account = job.request.headers["Fullbore-Photo-Account"] == ofBob ? "bob" : "anna"
        #expect(job.request.headers["Authorization"] == "Bearer \(account)")
      }
      if !isDone {
        let bobs = system.state.withLock {
          $0.jobs.values.count { $0.request.headers["Authorization"] == "Bearer bob" }
        }
        #expect(bobs == 3, "\(change)")
      }
    }
  }

  /// An app shows what was given up, with the photo.
  @Test func eachUserSeesOwnPhotosOnly() async throws {
    let (system, journal) = (FakePhotoSystem(), try await journal())
    let place = "https://nas.example/photos/"
    for (account, state) in [
      ("anna", JournalJob.State.refused), ("anna", .waiting), ("bob", .refused), (nil, .waiting),
    ] {
      try await journal.jobs.keep(
        JournalJob(
          "\(place)\(state)/IMG_0001.HEIC", account: JournalJob.digest(ofAccount: account),
          source: "asset of \(account ?? "nobody")\n1\nIMG_0001.HEIC", version: "1", state: state, error: "409"))
    }
    try await journal.jobs.keep(
      JournalJob(
        "https://other.example/a.heic", account: JournalJob.digest(ofAccount: "anna"), source: "x", state: .refused))
    let anna = uploads("anna", system, journal)
    #expect(try await anna.refused().map(\.asset) == ["asset of anna"])
    #expect(try await anna.waiting().map(\.asset) == ["asset of anna"])
    #expect(try await uploads("bob", system, journal).refused().map(\.asset) == ["asset of bob"])
    #expect(try await uploads("bob", system, journal).waiting().isEmpty)
    #expect(try await uploads(system, journal) { nil }.refused().isEmpty)
    #expect(try await journal.jobs.refused(account: "bob").map(\.asset) == ["asset of bob"])
    #expect(try await journal.jobs.refused(account: nil).isEmpty)
    #expect(try await journal.jobs.waiting(account: nil).map(\.asset) == ["asset of nobody"])
    #expect(try await journal.jobs.refused(account: "anna").count == 2)
  }
}
