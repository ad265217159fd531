import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// What fails for a while: the source, the system's tasks, the spool.
@Suite(.timeLimit(.minutes(2))) struct BackgroundOutageTests {
  private let source = PatternSource(length: 70_000, seed: 11)

  /// A retry as on a device, with short delays. Without a longest pause all of them are left to the system.
  private func phone(
    _ server: ServedFolder, _ uploadProtocol: BackgroundProtocol, daemon: Daemon = Daemon(), defers: Bool
  ) throws -> Phone {
    try Phone(server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon) { settings in
      settings.retry = RetryPolicy(first: .milliseconds(2), longest: .milliseconds(20), outage: .seconds(100))
      if defers { settings.longestPause = .zero }
    }
  }

  @Test(arguments: BackgroundProtocol.allCases, [true, false])
  func aSourceThatIsLostForAWhileIsWaitedFor(_ uploadProtocol: BackgroundProtocol, defers: Bool) async throws {
    for knowsLength in [true, false] {
      let server = try ServedFolder()
      let phone = try phone(server, uploadProtocol, defers: defers)
      let pattern = PatternSource(length: 70_000, seed: 11, knowsLength: knowsLength)
      let photo = AbsentSource(pattern)
      let app = try await phone.launch()
      async let end = app.end(of: "film.mov")
      try await app.add(photo, as: "film.mov")
      // A reader that is lost is opened three more times at once.
      try await eventually { photo.openings > 12 }
      guard case .waiting(let error, _)? = app.uploader.uploads.first?.state else {
        Issue.record("\(app.uploader.uploads)")
        return
      }
      #expect(error.side == .source && error.message.contains("the network connection was lost"))
      let states = try await app.journal.unfinished().map(\.state)
      #expect(states.allSatisfy { $0 == .intent || $0 == .open }, "\(states)")
      photo.isAbsent = false
      #expect(await end.isFinished)
      #expect(server.has("film.mov", pattern))
      #expect(phone.names.isEmpty)
    }
  }

  /// The source disappears between two pieces, when the system has a piece that it has not sent.
  @Test(arguments: BackgroundProtocol.allCases)
  func aSourceThatIsLostLaterIsWaitedForWithoutHaste(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let daemon = Daemon(isHeld: true)
    let phone = try phone(server, uploadProtocol, daemon: daemon, defers: true)
    let first = try await phone.launch()
    try await first.add(source, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    first.life.kill()
    let photo = AbsentSource(source)
    let app = try await phone.launch(["film.mov": photo])
    async let end = app.end(of: "film.mov")
    try await eventually { photo.openings > 12 }
    let before = photo.openings
    try await Task.sleep(for: .milliseconds(200))
    // Four openings for each pause, which soon has 10 to 20 ms.
    #expect(photo.openings - before < 200)
    photo.isAbsent = false
    daemon.isHeld = false
    #expect(await end.isFinished)
    #expect(server.has("film.mov", source))
  }

  @Test(arguments: BackgroundProtocol.allCases)
  func theNextLaunchGoesOnWithASourceThatWasLost(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let phone = try phone(server, uploadProtocol, defers: false)
    let photo = AbsentSource(source)
    let first = try await phone.launch()
    try await first.add(photo, as: "film.mov")
    try await eventually { photo.openings > 8 }
    first.life.kill()
    photo.isAbsent = false
    let second = try await phone.launch(["film.mov": photo])
    #expect(await second.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
  }

  /// The app was suspended for longer than the policy waits.
  @Test func aSourceThatWasGivenUpIsTriedByTheNextLaunch() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    let photo = AbsentSource(source)
    let first = try await phone.launch()
    async let end = first.end(of: "film.mov")
    try await first.add(photo, as: "film.mov")
    guard case .failed? = await end else {
      Issue.record("a source that was lost for good ended otherwise")
      return
    }
    first.life.kill()
    photo.isAbsent = false
    let second = try await phone.launch(["film.mov": photo])
    #expect(await second.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
  }

  /// The user ends the app in the app switcher: the system cancels its tasks, and tells the next launch.
  @Test(arguments: BackgroundProtocol.allCases)
  func theLaunchAfterAForcedQuitGoesOn(_ uploadProtocol: BackgroundProtocol) async throws {
    let (server, phone, app) = try await Phone.holding(uploadProtocol.uploadProtocol)
    let daemon = phone.daemon
    try await app.add(source, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    app.life.kill()
    for started in daemon.started { daemon.cancel(started.task.label) }
    try await eventually { daemon.isIdle }
    daemon.isHeld = false
    let next = try await phone.launch(["film.mov": source])
    let end = await next.end(of: "film.mov")
    #expect(end.isFinished, "\(String(describing: end))")
    #expect(server.has("film.mov", source))
  }

  /// As before the first unlock of the device.
  @Test func aSpoolThatCannotBeReadAtTheLaunchIsReadLater() async throws {
    let (server, phone, first) = try await Phone.holding(Tus())
    let daemon = phone.daemon
    try await first.add(source, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    first.life.kill()
    daemon.isHeld = false
    let (spool, away) = (phone.settings.spool, phone.scratch.path.appending("away"))
    #expect(rename(spool, away) == 0)
    close(spool.withCString { creat($0, 0o600) })
    let second = try await phone.launch(["film.mov": source])
    let other = PatternSource(length: 1000, seed: 12)
    await #expect(throws: UploadError.self) { try await second.add(other, as: "other.mov") }
    #expect(spool.withCString { unlink($0) } == 0 && rename(away, spool) == 0)
    async let end = second.end(of: "film.mov")
    try await second.add(other, as: "other.mov")
    #expect(await end.isFinished)
    #expect(server.has("film.mov", source))
    try await eventually { server.has("other.mov", other) && phone.names.isEmpty }
    #expect(phone.largestSpool <= phone.settings.spoolBytes)
  }

  private func rename(_ from: BytePath, _ to: BytePath) -> Int32 {
    from.withCString { from in to.withCString { Platform.rename(from, $0) } }
  }

  /// `add` waits for the end of another upload, and the upload has not begun.
  @Test func anUploadThatWaitsForASeatCanBeCancelled() async throws {
    let (server, phone, app) = try await Phone.holding(Tus()) { $0.mostUploads = 2 }
    let daemon = phone.daemon
    let adding = Task { [source] in
      for number in 1...3 { try await app.add(source, as: BytePath("\(number).mov")) }
    }
    try await eventually { ((try? await app.journal.unfinished()) ?? []).count == 3 }
    try await app.uploader.cancel("3.mov")
    // The cancelled upload needs no seat.
    try await adding.value
    daemon.isHeld = false
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("1.mov", source) && server.has("2.mov", source))
    #expect(server.contents(of: "3.mov") == nil)
    #expect(try await app.journal.unfinished().isEmpty)
  }

  /// A cleaner, or an update that moves the app's container, takes the pieces of running tasks away.
  @Test(arguments: [1, 4]) func theBoundHoldsAfterPiecesHaveDisappeared(lost: Int) async throws {
    let (_, phone, first) = try await Phone.holding(Tus())
    let daemon = phone.daemon
    for number in 0..<4 {
      try await first.add(PatternSource(length: 70_000, seed: UInt64(number)), as: BytePath("\(number)"))
    }
    try await eventually { daemon.started.filter { $0.task.length == 16 << 10 }.count == 4 }
    first.life.kill()
    for name in phone.names.prefix(lost) {
      #expect(phone.settings.spool.appending(name).withCString { unlink($0) } == 0)
    }
    let second = try await phone.launch()
    for number in 0..<4 { try await second.uploader.cancel(BytePath("\(number)")) }
    for number in 0..<16 {
      try await second.add(PatternSource(length: 16 << 10, seed: 100 + UInt64(number)), as: BytePath("many\(number)"))
    }
    try await eventually { phone.spoolBytes >= 64 << 10 }
    try await Task.sleep(for: .milliseconds(200))
    #expect(phone.spoolBytes == 64 << 10)
    second.life.kill()
  }
}
