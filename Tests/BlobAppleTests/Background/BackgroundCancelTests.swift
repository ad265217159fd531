import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Sources that are added again while their uploads are being cancelled, or soon after.
@Suite(.timeLimit(.minutes(3))) struct BackgroundCancelTests {
  private let film = PatternSource(length: 70_000, seed: 1)

  /// A phone whose upload of the film has a session, and whose server has not answered its deletion yet.
  private func phoneThatCancels(
    all: Bool, _ mayAnswer: Flag
  ) async throws -> (server: ServedFolder, phone: Phone, app: App, cancelling: Task<Void, any Error>) {
    let isAsked = Flag(false)
    let direct = FaultyTransport(SocketTransport()) { _, request in
      guard request.method == "DELETE", !isAsked.value else { return .none }
      isAsked.value = true
      return .wait { mayAnswer.value }
    }
    let (server, phone, app) = try await Phone.holding(Tus(), direct: direct)
    try await app.add(film, as: "film.mov")
    try await eventually { phone.daemon.started.contains { $0.task.length > 0 } }
    let cancelling = Task {
      if all { try await app.uploader.cancelAll() } else { try await app.uploader.cancel("film.mov") }
    }
    try await eventually { isAsked.value }
    return (server, phone, app, cancelling)
  }

  @Test(arguments: [true, false])
  func anUploadThatIsAddedDuringItsDeletionIsSent(cancelsAll: Bool) async throws {
    let mayAnswer = Flag(false)
    let (server, phone, app, cancelling) = try await phoneThatCancels(all: cancelsAll, mayAnswer)
    async let end = app.end(of: "film.mov")
    try await app.add(film, as: "film.mov")
    #expect(try await app.journal.unfinished().contains { $0.state != .refused })
    phone.daemon.isHeld = false
    // It does not wait for the deletion.
    let state = await end
    #expect(state.isFinished, "\(String(describing: state))")
    mayAnswer.value = true
    try await cancelling.value
    #expect(server.has("film.mov", film))
    #expect(try await app.journal.unfinished().isEmpty)
    #expect(phone.names.isEmpty)
  }

  @Test func anUploadThatIsAddedDuringItsDeletionSurvivesTheApp() async throws {
    let mayAnswer = Flag(false)
    let (server, phone, app, cancelling) = try await phoneThatCancels(all: false, mayAnswer)
    try await app.uploader.add(film, as: "film.mov", metadata: ["kind": "film"])
    app.life.kill()
    cancelling.cancel()
    mayAnswer.value = true
    phone.daemon.isHeld = false
    let next = try await phone.launch(["film.mov": film])
    #expect(await next.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", film))
    let entry = try #require(try await next.journal.entries(.done, limit: 1).first)
    #expect(try await next.journal.additions.addition(of: entry.id)?.metadata == ["kind": "film"])
    // The session that was being deleted is deleted now.
    try await eventually { (try? await next.journal.unfinished().isEmpty) == true }
  }

  /// The upload ends only after a request that does not notice the cancellation.
  @Test func anUploadThatIsAddedBeforeTheEndOfTheCancelledOneIsSent() async throws {
    let server = try ServedFolder()
    let (isCancelled, mayAnswer) = (Flag(false), Flag(false))
    let direct = FaultyTransport(SocketTransport()) { number, _ in
      guard number == 0 else { return .none }
      return .wait {
        if Task.isCancelled { isCancelled.value = true }
        return mayAnswer.value
      }
    }
    let phone = try Phone(server.endpoint, Tus(), direct: direct)
    let app = try await phone.launch()
    try await app.add(film, as: "film.mov")
    try await eventually { direct.requests == 1 }
    let cancelling = Task { try await app.uploader.cancel("film.mov") }
    try await eventually { isCancelled.value }
    let adding = Task { [film] in try await app.add(film, as: "film.mov") }
    try await Task.sleep(for: .milliseconds(100))
    mayAnswer.value = true
    try await adding.value
    try await cancelling.value
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("film.mov", film))
    #expect(try await app.journal.unfinished().isEmpty)
  }

  /// A server that gets two versions at the same time may store the old one last. So may one that gets two sources for one place.
  @Test(arguments: BackgroundProtocol.allCases, ["the same", "another"] as [BytePath])
  func anUploadAddedAgainStartsAfterTheCancelledRequestHasEnded(
    _ uploadProtocol: BackgroundProtocol, _ identity: BytePath
  ) async throws {
    let (server, phone, app) = try await Phone.holding(uploadProtocol.uploadProtocol, spoolBytes: 400_000) {
      $0.overwrite = true
    }
    let daemon = phone.daemon
    daemon.finishesCancelled = true
    try await app.uploader.add(PatternSource(length: 7000, seed: 1), as: "a.heic", identity: "the same")
    try await eventually { daemon.started.count == 1 }
    try await app.uploader.cancel("a.heic")
    let edit = PatternSource(length: 7000, seed: 2)
    async let end = app.end(of: "a.heic")
    try await app.uploader.add(edit, as: "a.heic", identity: identity)
    // A file with another name does not wait.
    try await app.uploader.add(edit, as: "b.heic", identity: "b")
    try await eventually { daemon.started.count > 1 }
    try await Task.sleep(for: .milliseconds(200))
    #expect(daemon.started.count == 2)
    daemon.isHeld = false
    let state = await end
    #expect(state.isFinished, "\(String(describing: state))")
    try await eventually { daemon.isIdle }
    #expect(server.has("a.heic", edit) && server.has("b.heic", edit))
  }

  /// The app was killed before the server had answered, and nothing else is uploaded.
  @Test func aSessionThatWasNotDeletedIsDeletedByTheNextLaunch() async throws {
    let mayAnswer = Flag(false)
    let (server, phone, app, cancelling) = try await phoneThatCancels(all: true, mayAnswer)
    app.life.kill()
    cancelling.cancel()
    mayAnswer.value = true
    phone.daemon.isHeld = false
    let next = try await phone.launch()
    try await eventually { (try? await next.journal.unfinished().isEmpty) == true }
    #expect(next.uploader.uploads.isEmpty && server.contents(of: "film.mov") == nil)
  }

  /// An app may send one photo in front while its background uploader gets the same one. What waits for it does not keep the
  /// app awake.
  @Test func anUploadThatIsSentInFrontIsWaitedFor() async throws {
    let server = try ServedFolder()
    let mayAnswer = Flag(false)
    let direct = FaultyTransport(SocketTransport()) { _, _ in .wait { mayAnswer.value } }
    let phone = try Phone(server.endpoint, Tus()) { $0.handlerLimit = .seconds(600) }
    let app = try await phone.launch()
    let front = Uploader(phone.destination, transport: direct, journal: app.journal)
    let sending = Task { [film] in try await front.upload(film, as: "film.mov") }
    try await eventually { direct.requests == 1 }
    async let end = app.end(of: "film.mov")
    try await app.uploader.add(film, as: "film.mov", metadata: ["kind": "film"])
    try await eventually {
      guard case .waiting? = app.uploader.uploads.first?.state else { return false }
      return true
    }
    guard case .waiting(let error, _)? = app.uploader.uploads.first?.state else { return }
    #expect(error.message.contains("this app") && !error.message.contains("process"), "\(error.message)")
    let isCalled = Flag(false)
    #expect(await app.uploader.handleEvents(identifier: "test") { isCalled.value = true })
    app.uploader.service.registry.deliveredAll()
    try await eventually { isCalled.value }
    let entry = try #require(try await app.journal.unfinished().first)
    #expect(try await app.journal.additions.addition(of: entry.id)?.metadata == ["kind": "film"])
    mayAnswer.value = true
    #expect(await end.isFinished)
    #expect(try await sending.value != nil)
    #expect(server.has("film.mov", film) && phone.daemon.bytes == 0)
  }

  /// A system that tells the end of no cancelled task must not hold up uploads for ever.
  @Test func theEndOfACancelledRequestIsWaitedForInVainOnce() async throws {
    let (server, phone, app) = try await Phone.holding(Tus(), spoolBytes: 400_000) {
      $0.overwrite = true
      $0.cancelling = .milliseconds(20)
    }
    phone.daemon.finishesCancelled = true
    try await app.add(PatternSource(length: 7000, seed: 1), as: "a.heic")
    try await eventually { phone.daemon.started.count == 1 }
    try await app.uploader.cancel("a.heic")
    try await app.add(PatternSource(length: 7000, seed: 2), as: "a.heic")
    try await eventually { phone.daemon.started.count == 2 }
    phone.daemon.isHeld = false
    try await eventually { app.uploader.uploads.isEmpty && phone.daemon.isIdle }
    #expect(server.contents(of: "a.heic") != nil)
  }

  /// Once `add` has returned, the source arrives, wherever the app is killed.
  @Test func killAtEveryStepLosesNothingThatIsAddedDuringItsDeletion() async throws {
    var (step, added) = (1, 0)
    while true {
      let server = try ServedFolder()
      let (isAsked, hasAdded, mayAnswer) = (Flag(false), Flag(false), Flag(false))
      let direct = FaultyTransport(SocketTransport()) { _, request in
        guard request.method == "DELETE", !isAsked.value else { return .none }
        isAsked.value = true
        return .wait { mayAnswer.value }
      }
      let phone = try Phone(server.endpoint, Tus(), daemon: Daemon(isHeld: true), direct: direct)
      let app = try await phone.launch(killedAt: step)
      let adding = Task { [film] in
        try await app.add(film, as: "film.mov")
        try await eventually { phone.daemon.started.contains { $0.task.length > 0 } }
        let cancelling = Task { try await app.uploader.cancel("film.mov") }
        try await eventually { isAsked.value }
        try await app.add(film, as: "film.mov")
        hasAdded.value = true
        phone.daemon.isHeld = false
        mayAnswer.value = true
        try await cancelling.value
      }
      // A call that the kill has stopped does not return.
      try await eventually { app.life.isOver || hasAdded.value && app.uploader.uploads.isEmpty }
      let isOver = app.life.isOver
      app.life.kill()
      phone.daemon.isHeld = false
      mayAnswer.value = true
      if hasAdded.value {
        added += 1
        let next = try await phone.launch(["film.mov": film])
        _ = try await next.uploader.destinationID()
        try await eventually { next.uploader.uploads.isEmpty }
        #expect(server.has("film.mov", film), "killed at step \(step)")
        next.life.kill()
      }
      adding.cancel()
      if !isOver { break }
      step += 1
    }
    #expect(added > 1)
  }
}
