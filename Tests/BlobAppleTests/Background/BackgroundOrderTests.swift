import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// Sources that are added again while, or after, others are sent to their place: the one that was added last is stored last,
/// also if the app is killed once `add` has returned.
@Suite(.timeLimit(.minutes(3))) struct BackgroundOrderTests {
  private let first = PatternSource(length: 7000, seed: 1)
  private let second = PatternSource(length: 7000, seed: 2)
  private let third = PatternSource(length: 7000, seed: 3)
  private let photos = (0..<32).map { PatternSource(length: 600, seed: UInt64($0) + 10) }

  /// The user goes back to a photo that was uploaded before. All places for uploads are taken when the app is killed.
  /// `isReplaced`: the other photo has arrived; otherwise it still waits.
  @Test(arguments: BackgroundProtocol.allCases, [true, false])
  func aSourceThatIsAddedAgainAfterAnotherSurvives(
    _ uploadProtocol: BackgroundProtocol, isReplaced: Bool
  ) async throws {
    let server = try ServedFolder()
    let daemon = Daemon()
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, spoolBytes: 400_000, daemon: daemon) {
      $0.overwrite = true
    }
    let app = try await phone.launch()
    try await app.uploader.add(second, as: "a.heic", identity: "B")
    try await eventually { app.uploader.uploads.isEmpty }
    if isReplaced {
      try await app.uploader.add(first, as: "a.heic", identity: "A")
      try await eventually { app.uploader.uploads.isEmpty }
      #expect(server.has("a.heic", first))
    }
    daemon.isHeld = true
    let before = daemon.started.count
    for (number, photo) in photos.enumerated() { try await app.uploader.add(photo, as: BytePath("\(number).heic")) }
    try await eventually { daemon.started.count == before + 32 }
    if !isReplaced { try await app.uploader.add(first, as: "a.heic", identity: "A") }
    try await app.uploader.add(second, as: "a.heic", identity: "B", metadata: ["kind": "again"])
    app.life.kill()
    await app.journal.close()
    daemon.isHeld = false
    var sources: [BytePath: any BlobSource] = ["A": first, "B": second]
    for (number, photo) in photos.enumerated() { sources[BytePath("\(number).heic")] = photo }
    for _ in 0..<2 {
      let next = try await phone.launch(sources)
      _ = try await next.uploader.destinationID()
      try await eventually { next.uploader.uploads.isEmpty }
      next.life.kill()
      await next.journal.close()
    }
    #expect(server.has("a.heic", second), "the first source is stored: \(server.has("a.heic", first))")
    // The journal does not keep what it no longer needs.
    let last = try await phone.launch(sources)
    _ = try await last.uploader.destinationID()
    #expect(last.uploader.uploads.isEmpty)
    last.life.kill()
  }

  /// `isEdited`: in another version than before.
  @Test(arguments: [(true, false), (true, true), (false, false)])
  func aSourceThatIsAddedAgainIsSentAfterThoseThatWait(isEdited: Bool, isKilled: Bool) async throws {
    let server = try ServedFolder()
    let daemon = Daemon(isHeld: true)
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: 400_000, daemon: daemon) { $0.overwrite = true }
    var app = try await phone.launch()
    let again = isEdited ? third : first
    try await app.uploader.add(first, as: "a.heic", identity: "A")
    try await eventually { daemon.started.count == 1 }
    try await app.uploader.add(second, as: "a.heic", identity: "B")
    try await app.uploader.add(again, as: "a.heic", identity: "A", metadata: ["kind": "again"])
    if isKilled {
      app.life.kill()
      await app.journal.close()
      app = try await phone.launch(["A": again, "B": second])
      _ = try await app.uploader.destinationID()
    }
    daemon.isHeld = false
    let last = app
    try await eventually { last.uploader.uploads.isEmpty && daemon.isIdle }
    #expect(server.has("a.heic", again), "the other source is stored: \(server.has("a.heic", second))")
    let creations = daemon.started.compactMap { $0.task.request.headers["Upload-Metadata"] }
    #expect(creations.last?.contains("kind YWdhaW4=") == true, "again in \(creations)")
    app.life.kill()
  }

  /// The user has deleted the first photo, and picked another one in its place. The request for the first one is still at
  /// the system.
  @Test(arguments: BackgroundProtocol.allCases)
  func aRequestForASourceThatIsGoneDoesNotEndLast(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let mayEnd = Flag(false)
    let daemon = Daemon { number, _ in
      if number == 0 { while !mayEnd.value { usleep(1000) } }
      return nil
    }
    daemon.finishesCancelled = true
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, spoolBytes: 400_000, daemon: daemon) {
      $0.overwrite = true
    }
    let app = try await phone.launch()
    try await app.uploader.add(first, as: "a.heic", identity: "A")
    try await eventually { daemon.started.count == 1 }
    try await app.uploader.add(second, as: "a.heic", identity: "B")
    app.life.kill()
    await app.journal.close()
    let next = try await phone.launch(["B": second])
    _ = try await next.uploader.destinationID()
    try await Task.sleep(for: .milliseconds(300))
    #expect(daemon.started.count == 1)
    mayEnd.value = true
    try await eventually { next.uploader.uploads.isEmpty && daemon.isIdle }
    #expect(server.has("a.heic", second))
    next.life.kill()
  }

  /// `isOther`: another source waits for the end of the first one; otherwise another version of it.
  @Test(arguments: [true, false])
  func theCompletionHandlerIsCalledOnlyOnceTheNextUploadHasStarted(isOther: Bool) async throws {
    let (_, phone, app) = try await Phone.holding(Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    try await app.uploader.add(first, as: "a.heic", identity: "A")
    try await eventually { phone.daemon.started.count == 1 }
    try await app.uploader.add(SlowlyOpened(base: second), as: "a.heic", identity: isOther ? "B" : "A")
    try await Task.sleep(for: .milliseconds(100))
    let seen = Mutex<Int?>(nil)
    await MainActor.run {
      _ = app.uploader.handleEvents(identifier: "test") { seen.withLock { $0 = phone.daemon.started.count } }
    }
    phone.daemon.isHeld = false
    try await eventually { seen.withLock { $0 } != nil }
    #expect(seen.withLock { $0 } == 2)
    try await eventually { app.uploader.uploads.isEmpty }
    app.life.kill()
  }
}

/// Takes a while to be opened.
private struct SlowlyOpened: BlobSource {
  let base: PatternSource
  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try base.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    usleep(300_000)
    return try base.open(at: offset, cancel)
  }
}
