import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// Two background sessions of one app that send to one place.
@Suite(.timeLimit(.minutes(2))) struct BackgroundSessionsTests {
  private let first = PatternSource(length: 7000, seed: 1)
  private let second = PatternSource(length: 7000, seed: 2)

  /// The app was killed after the first version had arrived, and before the second one was begun.
  @Test func adoptingTakesVersionsThatWait() async throws {
    let app = try TwoSessions(Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    let launch = try await app.launch()
    try await launch.uploaders[0].add(first, as: "a.heic")
    try await eventually { app.daemons[0].started.count == 1 }
    let edit = LookedAtSlowly(second)
    try await launch.uploaders[0].add(edit, as: "a.heic", metadata: ["kind": "edit"])
    app.daemons[0].isHeld = false
    try await eventually { edit.calls.load(ordering: .relaxed) == 2 }
    try await launch.journal.flush()
    #expect(app.server.has("a.heic", first))
    await app.kill(launch)
    edit.mayAnswer.value = true
    app.daemons[1].isHeld = false
    let next = try await app.launch(["a.heic": second], only: 1)
    try await next.uploaders[0].adopt(uploadsOf: "session 0")
    #expect(next.uploaders[0].uploads.count == 1)
    try await eventually { next.uploaders[0].uploads.isEmpty }
    #expect(app.server.has("a.heic", second))
    await app.kill(next)
  }

  /// The first version was cancelled, and its request may still reach the server.
  @Test(arguments: BackgroundProtocol.allCases, [true, false])
  func theCancelledRequestOfAnotherSessionIsWaitedFor(_ uploadProtocol: BackgroundProtocol, isKilled: Bool) async throws
  {
    let mayEnd = Flag(false)
    let slow = Daemon { number, _ in
      if number == 0 { while !mayEnd.value { usleep(1000) } }
      return nil
    }
    slow.finishesCancelled = true
    let app = try TwoSessions(uploadProtocol.uploadProtocol, [slow, Daemon()], spoolBytes: 400_000) {
      $0.overwrite = true
    }
    var launch = try await app.launch()
    try await launch.uploaders[0].add(first, as: "a.heic")
    try await eventually { slow.started.count == 1 }
    if isKilled {
      try await launch.uploaders[1].add(second, as: "a.heic")
      await app.kill(launch)
      launch = try await app.launch(["a.heic": second])
      for uploader in launch.uploaders { _ = try await uploader.destinationID() }
    } else {
      try await launch.uploaders[0].cancel("a.heic")
      try await launch.uploaders[1].add(second, as: "a.heic")
    }
    let uploaders = launch.uploaders
    try await Task.sleep(for: .milliseconds(300))
    #expect(app.daemons[1].started.isEmpty)
    mayEnd.value = true
    try await eventually { uploaders.allSatisfy { $0.uploads.isEmpty } && app.daemons.allSatisfy(\.isIdle) }
    #expect(app.server.has("a.heic", second))
    await app.kill(launch)
  }

  /// The first session has not claimed the upload yet when the second one cancels it. The entry must stay, since `add` of the
  /// first one has returned.
  @Test func cancellingInOneSessionKeepsTheUploadsOfAnother() async throws {
    let app = try TwoSessions(Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    let launch = try await app.launch()
    let slow = LookedAtSlowly(first)
    try await launch.uploaders[0].add(slow, as: "a.heic")
    try await eventually { slow.calls.load(ordering: .relaxed) == 2 }
    try await launch.uploaders[1].add(first, as: "a.heic")
    try await launch.uploaders[1].cancelAll()
    try await launch.journal.flush()
    #expect(try await launch.journal.unfinished().count == 1)
    slow.mayAnswer.value = true
    app.daemons[0].isHeld = false
    try await eventually { launch.uploaders.allSatisfy { $0.uploads.isEmpty } }
    #expect(app.server.has("a.heic", first))
    await app.kill(launch)
  }

  @Test(arguments: BackgroundProtocol.allCases)
  func theSourceThatIsAddedLastIsStoredLast(_ uploadProtocol: BackgroundProtocol) async throws {
    let app = try TwoSessions(uploadProtocol.uploadProtocol, spoolBytes: 400_000) { $0.overwrite = true }
    let launch = try await app.launch()
    app.daemons[1].isHeld = false
    try await launch.uploaders[0].add(first, as: "a.heic", identity: "A")
    try await eventually { app.daemons[0].started.count == 1 }
    try await launch.uploaders[1].add(second, as: "a.heic", identity: "B")
    try await Task.sleep(for: .milliseconds(200))
    #expect(app.daemons[1].started.isEmpty)
    app.daemons[0].isHeld = false
    try await eventually { launch.uploaders.allSatisfy { $0.uploads.isEmpty } }
    #expect(app.server.has("a.heic", second))
    await app.kill(launch)
  }
}

/// Its second look at the source takes as long as the test wants.
final class LookedAtSlowly: BlobSource {
  let base: PatternSource
  let calls = Atomic(0)
  let mayAnswer = Flag(false)
  init(_ base: PatternSource) { self.base = base }

  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    if calls.add(1, ordering: .relaxed).newValue == 2 {
      while !mayAnswer.value, !cancel.isCancelled { usleep(1000) }
    }
    return try base.info(cancel)
  }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try base.open(at: offset, cancel)
  }
}
