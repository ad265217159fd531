import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// Another version of a source that is added while an earlier one is being sent.
@Suite(.timeLimit(.minutes(3))) struct BackgroundAgainTests {
  private let first = PatternSource(length: 7000, seed: 7)
  private let second = PatternSource(length: 7000, seed: 8)

  /// A phone whose system has the only piece of the first version, when the second one is added.
  private func phoneWithBoth(_ server: ServedFolder) async throws -> (Phone, App) {
    let daemon = Daemon(isHeld: true)
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: 400_000, daemon: daemon) { $0.overwrite = true }
    let app = try await phone.launch()
    try await app.uploader.add(first, as: "a.heic", contentType: "image/heic", metadata: ["kind": "photo"])
    try await eventually { daemon.started.contains { $0.task.length == 7000 } }
    try await app.uploader.add(second, as: "a.heic", contentType: "image/jpeg", metadata: ["kind": "edit"])
    return (phone, app)
  }

  /// The type and metadata of the last creation of `a.heic`.
  private func lastCreation(_ phone: Phone) throws -> String {
    let creations = phone.daemon.started.compactMap { $0.task.request.headers["Upload-Metadata"] }
    return try #require(creations.last { $0.contains("filename YS5oZWlj") })
  }

  private func expectSecond(_ phone: Phone, _ server: ServedFolder) throws {
    #expect(server.has("a.heic", second))
    let metadata = try lastCreation(phone)
    #expect(metadata.contains("filetype aW1hZ2UvanBlZw=="), "image/jpeg in \(metadata)")
    #expect(metadata.contains("kind ZWRpdA=="), "edit in \(metadata)")
    #expect(phone.names.isEmpty)
  }

  @Test func aVersionAddedAgainIsSentWithItsOwnTypeAndMetadata() async throws {
    let server = try ServedFolder()
    let (phone, app) = try await phoneWithBoth(server)
    async let end = app.end(of: "a.heic")
    phone.daemon.isHeld = false
    #expect(await end.isFinished)
    try expectSecond(phone, server)
    // The journal does not keep what it no longer needs.
    let entry = try #require(try await app.journal.entries(.done, limit: 1).first)
    try await eventually { (try? await app.journal.additions.addition(of: entry.id)) == .some(nil) }
  }

  @Test func theNextLaunchSendsAVersionAddedAgain() async throws {
    let server = try ServedFolder()
    let (phone, app) = try await phoneWithBoth(server)
    app.life.kill()
    phone.daemon.isHeld = false
    try await eventually { phone.daemon.isIdle }
    let next = try await phone.launch(["a.heic": second])
    let end = await next.end(of: "a.heic")
    #expect(end.isFinished, "\(String(describing: end))")
    try expectSecond(phone, server)
  }

  /// The app was killed between the end of the first version and the begin of the second.
  @Test func theNextLaunchSendsAVersionAddedAgainIfTheFirstIsDone() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    let app = try await phone.launch()
    try await app.add(first, as: "a.heic")
    try await eventually { app.uploader.uploads.isEmpty }
    let entry = try #require(try await app.journal.entries(.done, limit: 1).first)
    let version = try second.info(Cancellation()).validator?.version
    let addition = JournalAddition(metadata: ["kind": "edit"], contentType: "image/jpeg", version: version)
    try await app.journal.additions.keep(addition, of: entry.intent)
    app.life.kill()
    // A launch that cannot open the source leaves it to a later one.
    let without = try await phone.launch()
    _ = try await without.uploader.destinationID()
    #expect(without.uploader.uploads.isEmpty)
    without.life.kill()
    let next = try await phone.launch(["a.heic": second])
    _ = try await next.uploader.destinationID()
    try await eventually { next.uploader.uploads.isEmpty }
    try expectSecond(phone, server)
    // It is done now.
    try await eventually { (try? await next.journal.additions.addition(of: entry.id)) == .some(nil) }
    next.life.kill()
    let count = phone.daemon.started.count
    let last = try await phone.launch(["a.heic": second])
    _ = try await last.uploader.destinationID()
    #expect(last.uploader.uploads.isEmpty && phone.daemon.started.count == count)
  }

  /// A photo of several pieces is edited and added again while the system has the first piece. The second piece cannot be
  /// read any more.
  @Test func anEditInTheMiddleIsSentWithItsOwnTypeAndMetadata() async throws {
    let server = try ServedFolder()
    let daemon = Daemon(isHeld: true)
    // Creations without bytes are sent by the app itself.
    let creations = Mutex<[String]>([])
    let direct = FaultyTransport(SocketTransport()) { _, request in
      if let metadata = request.headers["Upload-Metadata"] { creations.withLock { $0.append(metadata) } }
      return .none
    }
    let phone = try Phone(server.endpoint, Tus(), daemon: daemon, direct: direct)
    let app = try await phone.launch()
    let edit = PatternSource(length: 70_000, seed: 8)
    let photo = EditedPhoto([PatternSource(length: 70_000, seed: 7), edit])
    async let end = app.end(of: "a.heic")
    try await app.uploader.add(photo, as: "a.heic", contentType: "image/heic", metadata: ["kind": "photo"])
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    photo.edit()
    try await app.uploader.add(photo, as: "a.heic", contentType: "image/jpeg", metadata: ["kind": "edit"])
    daemon.isHeld = false
    #expect(await end.isFinished)
    #expect(server.has("a.heic", edit) && phone.names.isEmpty)
    #expect(creations.withLock { $0.map { $0.contains("kind ZWRpdA==") } } == [false, true])
    #expect(creations.withLock { $0.last?.contains("filetype aW1hZ2UvanBlZw==") } == true)
    let entry = try #require(try await app.journal.entries(.done, limit: 1).first)
    try await eventually { (try? await app.journal.additions.addition(of: entry.id)) == .some(nil) }
  }

  /// 32 uploads run, so that of the photo has not looked at its source when it is edited and added again.
  @Test func anEditBeforeTheBeginIsSentOnceWithItsOwnTypeAndMetadata() async throws {
    let (server, phone, app) = try await Phone.holding(Tus())
    let daemon = phone.daemon
    for number in 0..<32 as Range<UInt64> {
      try await app.add(PatternSource(length: 1000, seed: number), as: BytePath("\(number).heic"))
    }
    try await eventually { daemon.started.count == 32 }
    let photo = EditedPhoto([first, second])
    async let end = app.end(of: "a.heic")
    try await app.uploader.add(photo, as: "a.heic", contentType: "image/heic", metadata: ["kind": "photo"])
    photo.edit()
    try await app.uploader.add(photo, as: "a.heic", contentType: "image/jpeg", metadata: ["kind": "edit"])
    daemon.isHeld = false
    #expect(await end.isFinished)
    try await eventually { app.uploader.uploads.isEmpty }
    try expectSecond(phone, server)
    #expect(daemon.started.count { $0.task.length == 7000 } == 1)
  }

  /// Both calls of `add` wait for the end of other uploads, and the second one goes on while the first version is sent.
  @Test func aVersionAddedAgainIsSentIfBothHaveWaited() async throws {
    let (server, phone, app) = try await Phone.holding(Tus(), spoolBytes: 400_000) {
      $0.overwrite = true
      $0.mostUploads = 2
    }
    let daemon = phone.daemon
    for number in 0..<2 as Range<UInt64> {
      try await app.add(PatternSource(length: 1000, seed: number), as: BytePath("\(number).heic"))
    }
    let absent = AbsentSource(first)
    let adding = Task {
      try await app.uploader.add(absent, as: "a.heic", contentType: "image/heic", metadata: ["kind": "photo"])
    }
    try await eventually { app.waitingForRoom("a.heic") == 1 }
    let addingAgain = Task { [second] in
      try await app.uploader.add(second, as: "a.heic", contentType: "image/jpeg", metadata: ["kind": "edit"])
    }
    try await eventually { app.waitingForRoom("a.heic") == 2 }
    daemon.isHeld = false
    try await adding.value
    try await addingAgain.value
    absent.isAbsent = false
    try await eventually { app.uploader.uploads.isEmpty }
    try expectSecond(phone, server)
  }

  /// An upload that an earlier launch has kept, and that does not run since its source cannot be opened.
  @Test(arguments: [true, false])
  func cancelEndsAVersionThatDoesNotRun(endsAll: Bool) async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    let app = try await phone.launch()
    for name in ["a.heic", "b.heic"] as [BytePath] { try await app.add(first, as: name) }
    try await eventually { app.uploader.uploads.isEmpty }
    let version = try second.info(Cancellation()).validator?.version
    for entry in try await app.journal.entries(.done, limit: 2) {
      let addition = JournalAddition(metadata: ["kind": "edit"], contentType: "image/jpeg", version: version)
      try await app.journal.additions.keep(addition, of: entry.intent)
    }
    app.life.kill()
    let without = try await phone.launch()
    if endsAll { try await without.uploader.cancelAll() } else { try await without.uploader.cancel("a.heic") }
    without.life.kill()
    let next = try await phone.launch(["a.heic": second, "b.heic": second])
    _ = try await next.uploader.destinationID()
    try await eventually { next.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", first))
    #expect(server.has("b.heic", endsAll ? first : second))
    // What was uploaded counts as uploaded.
    let count = phone.daemon.started.count
    try await next.add(first, as: "a.heic")
    try await eventually { next.uploader.uploads.isEmpty }
    #expect(phone.daemon.started.count == count)
  }

  /// A cancelled upload does not come back with the next launch.
  @Test func cancelEndsBothVersions() async throws {
    let server = try ServedFolder()
    let (phone, app) = try await phoneWithBoth(server)
    try await app.uploader.cancel("a.heic")
    phone.daemon.isHeld = false
    app.life.kill()
    let next = try await phone.launch(["a.heic": second])
    _ = try await next.uploader.destinationID()
    #expect(next.uploader.uploads.isEmpty)
    #expect(try await next.journal.unfinished().isEmpty)
  }

  /// Once `add` has returned, the version arrives, wherever the app is killed.
  @Test func aKillAtAnyStepDoesNotLoseAVersionAddedAgain() async throws {
    var (step, added) = (1, 0)
    while true {
      let server = try ServedFolder()
      let phone = try Phone(server.endpoint, Tus(), spoolBytes: 400_000) { $0.overwrite = true }
      let app = try await phone.launch(killedAt: step)
      let hasAdded = Atomic(false)
      let adding = Task { [first, second] in
        try await app.add(first, as: "a.heic")
        try await app.add(second, as: "a.heic")
        hasAdded.store(true, ordering: .relaxed)
      }
      // A call of `add` that the kill has stopped does not return.
      try await eventually { app.life.isOver || hasAdded.load(ordering: .relaxed) && app.uploader.uploads.isEmpty }
      let isOver = app.life.isOver
      app.life.kill()
      if hasAdded.load(ordering: .relaxed) {
        added += 1
        let next = try await phone.launch(["a.heic": second])
        _ = try await next.uploader.destinationID()
        try await eventually { next.uploader.uploads.isEmpty }
        #expect(server.has("a.heic", second), "killed at step \(step)")
        next.life.kill()
      } else {
        adding.cancel()
      }
      if !isOver { break }
      step += 1
    }
    #expect(added > 1)
  }

  @Test func theJournalKeepsWhatIsNeededOnly() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus()) { $0.overwrite = true }
    let app = try await phone.launch()
    func add(_ source: PatternSource, _ metadata: [String: String]) async throws -> Int64 {
      try await app.uploader.add(source, as: "a.heic", metadata: metadata)
      try await eventually { app.uploader.uploads.isEmpty }
      return try #require(try await app.journal.entries(.done, limit: 1).first).id
    }
    let id = try await add(first, ["kind": "photo"])
    #expect(try await app.journal.additions.addition(of: id)?.metadata == ["kind": "photo"])
    #expect(try await app.journal.additions.dropDone().isEmpty)
    #expect(try await app.journal.additions.addition(of: id) == nil)
    // A photo that was uploaded before is added each day.
    #expect(try await add(first, ["kind": "photo"]) == id)
    #expect(try await app.journal.additions.addition(of: id) == nil)
    #expect(try await add(second, ["kind": "photo"]) == id)
    #expect(try await app.journal.additions.addition(of: id) != nil)
    // The version after it has no metadata.
    #expect(try await add(PatternSource(length: 7000, seed: 9), [:]) == id)
    #expect(try await app.journal.additions.addition(of: id)?.metadata == [:])
    #expect(try await app.journal.additions.dropDone().isEmpty)
    #expect(try await app.journal.additions.addition(of: id) == nil)
  }
}
