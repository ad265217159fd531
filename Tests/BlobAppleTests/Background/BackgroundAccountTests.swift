import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Several users of one app, and what happens when one signs out.
@Suite(.timeLimit(.minutes(2))) struct BackgroundAccountTests {
  private let source = PatternSource(length: 10_000, seed: 5)

  @Test func anotherAccountDoesNotGoOnWithTheUploads() async throws {
    let server = try ServedFolder()
    let daemon = Daemon(isHeld: true)
    let anna = try Phone.of("anna", server, daemon)
    let first = try await anna.launch()
    try await first.add(source, as: "film.mov")
    try await eventually { daemon.started.count == 1 }
    first.life.kill()
    let bob = try Phone.of("bob", server, daemon, anna.scratch)
    let second = try await bob.launch(["film.mov": source])
    _ = try await second.uploader.destinationID()
    #expect(second.uploader.uploads.isEmpty && bob.names.isEmpty)
    second.life.kill()
    try await eventually { daemon.isIdle }
    daemon.isHeld = false
    #expect(server.contents(of: "film.mov") == nil)
    let third = try await anna.launch(["film.mov": source])
    try await eventually { third.uploader.uploads.isEmpty && server.has("film.mov", self.source) }
  }

  @Test func aFileUploadedByOneAccountIsUploadedAgainForAnother() async throws {
    let server = try ServedFolder()
    let anna = try Phone.of("anna", server)
    for account in ["anna", "bob", nil] as [String?] {
      let own = try Phone.of(account, server, Daemon(), anna.scratch)
      let app = try await own.launch()
      async let end = app.end(of: "film.mov")
      try await app.add(source, as: "film.mov")
      guard case .finished = await end else {
        Issue.record("the upload of \(account ?? "nobody") has not ended")
        return
      }
      #expect(own.daemon.bytes == 10_000, "\(account ?? "nobody") has sent it")
      app.life.kill()
    }
    let again = try await anna.launch()
    try await again.add(source, as: "film.mov")
    try await eventually { again.uploader.uploads.isEmpty }
    #expect(anna.daemon.bytes == 0)
  }

  /// Uploads that run, that wait, and that an earlier launch has left.
  @Test func cancelAllLeavesNothing() async throws {
    let (server, phone, first) = try await Phone.holding(Tus()) { $0.mostUploads = 4 }
    let daemon = phone.daemon
    let names = (0..<3).map { BytePath("early\($0).mov") }
    for name in names { try await first.add(source, as: name) }
    try await eventually { daemon.started.count == 3 }
    first.life.kill()
    let second = try await phone.launch()
    let adding = Task { [source] in
      for number in 0..<6 { try await second.add(source, as: BytePath("\(number).mov")) }
    }
    try await eventually { second.uploader.uploads.count == 4 }
    try await eventually { (try? await second.journal.unfinished().count) == 8 }
    // An upload that is added while all are cancelled may count as one of them or not.
    adding.cancel()
    try await second.uploader.cancelAll()
    _ = await adding.result
    try await second.uploader.cancelAll()
    #expect(second.uploader.uploads.isEmpty)
    #expect(try await second.journal.unfinished().isEmpty)
    // A thread that was writing a piece when its upload was cancelled deletes the piece by itself.
    try await eventually { phone.names.isEmpty }
    try await eventually { daemon.isIdle }
    daemon.isHeld = false
    try await second.add(source, as: "new.mov")
    try await eventually { second.uploader.uploads.isEmpty }
    #expect(server.has("new.mov", source))
    #expect(server.contents(of: "early0.mov") == nil)
  }

  /// Each question would wait for the time limit of the transport.
  @Test func cancelAllAsksAServerThatDoesNotAnswerOnce() async throws {
    let server = try ServedFolder()
    let daemon = Daemon(fault: { number, task in
      task.request.headers["Upload-Offset"] == nil ? nil : .answers(401)
    })
    let isGone = Flag(false)
    let direct = FaultyTransport(SocketTransport()) { _, _ in isGone.value ? .before(.timeout) : .none }
    let phone = try Phone(server.endpoint, Tus(), daemon: daemon, direct: direct)
    let app = try await phone.launch()
    let film = PatternSource(length: 70_000, seed: 1)
    for number in 0..<8 { try await app.add(film, as: BytePath("\(number).mov")) }
    try await eventually {
      guard let entries = try? await app.journal.unfinished() else { return false }
      return entries.count { $0.state == .open } == 8
    }
    isGone.value = true
    let before = direct.requests
    try await app.uploader.cancelAll()
    #expect(direct.requests <= before + 1)
    #expect(try await app.journal.unfinished().isEmpty)
  }
}
