import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// Several sources that are added under one name.
@Suite(.timeLimit(.minutes(2))) struct BackgroundPlaceTests {
  /// The photo library takes longer for the first one than for the second.
  @Test(arguments: BackgroundProtocol.allCases)
  func theUploadAddedLastIsStoredLast(_ uploadProtocol: BackgroundProtocol) async throws {
    let (server, phone, app) = try await Phone.holding(uploadProtocol.uploadProtocol, spoolBytes: 400_000) {
      $0.overwrite = true
    }
    let sources = (1...3).map { PatternSource(length: 7000, seed: UInt64($0)) }
    let slow = LookedAtSlowly(sources[0])
    try await app.uploader.add(slow, as: "a.heic", identity: "1")
    for number in 1...2 {
      try await app.uploader.add(sources[number], as: "a.heic", identity: BytePath("\(number + 1)"))
    }
    try await eventually { slow.calls.load(ordering: .relaxed) == 2 }
    try await Task.sleep(for: .milliseconds(200))
    #expect(phone.daemon.started.isEmpty && app.uploader.uploads.count == 3)
    // What waits for the others does not wait for its own end.
    try await app.uploader.add(sources[0], as: "b.heic", identity: "1")
    try await eventually { phone.daemon.started.count == 1 }
    slow.mayAnswer.value = true
    try await eventually { phone.daemon.started.count == 2 }
    phone.daemon.isHeld = false
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", sources[2]) && server.has("b.heic", sources[0]))
  }

  /// The first source is added again after the call of `cancel` has begun, so its upload goes on.
  @Test func endingAWaitingUploadKeepsTheRequestsOfTheOther() async throws {
    let (server, phone, app) = try await Phone.holding(Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    let sources = (1...2).map { PatternSource(length: 7000, seed: UInt64($0)) }
    for number in 0...1 { try await app.uploader.add(sources[number], as: "a.heic", identity: BytePath("\(number)")) }
    try await eventually { phone.daemon.started.count == 1 }
    let last = app.uploader.board.lastSeat
    try await app.uploader.add(sources[0], as: "a.heic", identity: "0")
    for task in app.uploader.board.cancel("a.heic", upTo: last) { await task.value }
    #expect(app.uploader.uploads.map(\.identity) == ["0"] && phone.daemon.started.count == 1 && !phone.daemon.isIdle)
    phone.daemon.isHeld = false
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", sources[0]))
  }

  @Test func anUploadThatWaitsForAnotherCanBeCancelled() async throws {
    let (server, phone, app) = try await Phone.holding(Tus(), spoolBytes: 400_000) { $0.overwrite = true }
    let sources = (1...2).map { PatternSource(length: 7000, seed: UInt64($0)) }
    for number in 0...1 { try await app.uploader.add(sources[number], as: "a.heic", identity: BytePath("\(number)")) }
    try await eventually { phone.daemon.started.count == 1 }
    try await app.uploader.cancelAll()
    #expect(app.uploader.uploads.isEmpty)
    #expect(try await app.journal.unfinished().isEmpty)
    phone.daemon.isHeld = false
    try await eventually { phone.daemon.isIdle }
    #expect(server.contents(of: "a.heic") == nil)
  }
}
