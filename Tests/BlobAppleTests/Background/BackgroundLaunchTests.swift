import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// What a launch finds of the one before.
@Suite(.timeLimit(.minutes(2))) struct BackgroundLaunchTests {
  private let source = PatternSource(length: 70_000, seed: 7)

  /// A phone whose app was killed while the system had a piece of its upload that it had not begun to send.
  private func phoneWithPiece(
    _ server: ServedFolder, _ uploadProtocol: BackgroundProtocol = .tus, _ source: (any BlobSource)? = nil
  ) async throws -> Phone {
    let daemon = Daemon(isHeld: true)
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon)
    let app = try await phone.launch()
    try await app.add(source ?? self.source, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    app.life.kill()
    #expect(phone.names.count == 1)
    return phone
  }

  @Test(arguments: BackgroundProtocol.allCases)
  func uploadsGoOnWithoutBeingAddedAgain(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let phone = try await phoneWithPiece(server, uploadProtocol)
    let app = try await phone.launch(["film.mov": source])
    phone.daemon.isHeld = false
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
    #expect(phone.daemon.bytes == 70_000, "the piece that the system had was not sent again")
    #expect(phone.names.isEmpty)
  }

  /// The server is not asked while the system still has a piece, nor after: it may have forgotten a finished upload.
  /// With 400,000 bytes the file goes with its creation, with 300,000 in two pieces.
  @Test(arguments: [400_000, 300_000] as [Int64])
  func theServerIsNotAskedAboutAPieceOfTheSystem(spoolBytes: Int64) async throws {
    let server = try ServedFolder()
    let direct = FaultyTransport(SocketTransport(), [])
    let daemon = Daemon(isHeld: true)
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: spoolBytes, daemon: daemon, direct: direct) { settings in
      settings.settling = .seconds(30)
    }
    let first = try await phone.launch()
    let large = PatternSource(length: 100_000, seed: 1)
    try await first.add(large, as: "film.mov")
    try await eventually { daemon.started.count == 1 }
    first.life.kill()
    daemon.isHeld = false
    try await eventually { daemon.isIdle }
    let before = direct.requests
    let second = try await phone.launch(["film.mov": large])
    #expect(await second.end(of: "film.mov").isFinished)
    #expect(direct.requests == before)
    #expect(server.has("film.mov", large))
  }

  @Test(arguments: BackgroundProtocol.allCases)
  func anotherVersionIsNotMixedIn(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let phone = try await phoneWithPiece(server, uploadProtocol)
    let other = PatternSource(length: 70_000, seed: 8)
    let app = try await phone.launch()
    try await app.add(other, as: "film.mov")
    phone.daemon.isHeld = false
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", other))
    #expect(phone.names.isEmpty)
  }

  @Test func anUploadWhoseSourceHasDisappearedFails() async throws {
    let server = try ServedFolder()
    let phone = try await phoneWithPiece(server)
    let gone = FileSource("/nonexistent/film.mov")
    let app = try await phone.launch(["film.mov": gone])
    guard case .failed(let error)? = await app.end(of: "film.mov") else {
      Issue.record("an upload without a source ended otherwise")
      return
    }
    #expect((error.cause as? BlobError)?.code == .notFound)
    #expect(server.contents(of: "film.mov") == nil)
  }

  /// The upload begins anew with the present version, and nothing of the old one is published.
  @Test func aSourceThatChangesIsPublishedInItsPresentVersion() async throws {
    let server = try ServedFolder()
    let now = PatternSource(length: 70_000, seed: 9)
    let changing = FaultySource(source, .replaced(by: now, from: 4))
    let phone = try Phone(server.endpoint, Tus())
    let app = try await phone.launch()
    try await app.add(changing, as: "film.mov")
    let end = await app.end(of: "film.mov")
    #expect(end.isFinished, "\(String(describing: end))")
    #expect(server.has("film.mov", now))
    #expect(phone.names.isEmpty)
  }

  /// A piece was changed on the disk, and the system may have sent it: what the server got is given up.
  @Test(arguments: BackgroundProtocol.allCases, [false, true])
  func aDamagedPieceIsNotPublished(_ uploadProtocol: BackgroundProtocol, isSent: Bool) async throws {
    let server = try ServedFolder()
    let phone = try await phoneWithPiece(server, uploadProtocol)
    let piece = phone.settings.spool.appending(phone.names[0])
    let file = piece.withCString { open($0, O_WRONLY) }
    #expect(pwrite(file, "damaged", 7, 100) == 7)
    close(file)
    if isSent {
      phone.daemon.isHeld = false
      try await eventually { phone.daemon.isIdle }
    }
    let app = try await phone.launch(["film.mov": source])
    phone.daemon.isHeld = false
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
    #expect(phone.names.isEmpty)
  }

  @Test func aPieceThatIsMissingOrCutIsWrittenAgain() async throws {
    for cut in [nil, 10] as [off_t?] {
      let server = try ServedFolder()
      let phone = try await phoneWithPiece(server)
      let piece = phone.settings.spool.appending(phone.names[0])
      piece.withCString { path in _ = cut.map { truncate(path, $0) } ?? unlink(path) }
      let app = try await phone.launch(["film.mov": source])
      phone.daemon.isHeld = false
      #expect(await app.end(of: "film.mov").isFinished)
      #expect(server.has("film.mov", source))
      #expect(phone.names.isEmpty)
    }
  }

  @Test func foreignFilesAreLeftAloneAndOrphansAreNot() async throws {
    let server = try ServedFolder()
    let phone = try await phoneWithPiece(server)
    let label = phone.names[0].description.replacingSuffix(".piece", with: "")
    let foreign: [BytePath] = ["notes.txt", "film.piece", "fullbore1-x.writing", ".piece"]
    let orphan = String(label.dropLast()) + (label.last == "0" ? "1" : "0")
    let orphans = [BytePath("\(orphan).writing"), BytePath("\(orphan).piece")]
    for name in foreign + orphans {
      let file = phone.settings.spool.appending(name).withCString { creat($0, 0o600) }
      close(file)
    }
    let app = try await phone.launch(["film.mov": source])
    phone.daemon.isHeld = false
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(phone.names.sorted() == foreign.sorted())
  }

  /// PhotoKit tells no length.
  @Test(arguments: BackgroundProtocol.allCases)
  func aSourceOfUnknownLengthGoesOn(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let unsized = UnsizedSource(source: source)
    let phone = try await phoneWithPiece(server, uploadProtocol, unsized)
    let app = try await phone.launch(["film.mov": unsized])
    phone.daemon.isHeld = false
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
    #expect(phone.daemon.bytes == 70_000)
    #expect(phone.names.isEmpty && phone.largestSpool <= 64 << 10)
  }

  @Test(arguments: BackgroundProtocol.allCases) func cancelLeavesNothing(_ uploadProtocol: BackgroundProtocol)
    async throws
  {
    let server = try ServedFolder()
    let daemon = Daemon()
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon)
    let app = try await phone.launch()
    daemon.isHeld = true
    async let end = app.end(of: "film.mov")
    try await app.add(source, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    try await app.uploader.cancel("film.mov")
    guard case .cancelled? = await end else {
      Issue.record("it was not cancelled")
      return
    }
    #expect(phone.names.isEmpty && app.uploader.uploads.isEmpty)
    #expect(try await app.journal.unfinished().isEmpty)
    #expect(server.unfinished() == 0)
    daemon.isHeld = false
    try await eventually { daemon.isIdle }
    try await app.add(source, as: "film.mov")
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
  }

  @Test func unsupportedSettingsAreRefusedAtOnce() async throws {
    let server = try ServedFolder()
    #expect(throws: UploadError.self) {
      try Phone(server.endpoint, PlainPut()).settings.adapt(
        UploadDestination(endpoint: server.endpoint, uploadProtocol: PlainPut(), limits: PartLimits()))
    }
    let phone = try Phone(server.endpoint, Tus())
    let app = try await phone.launch()
    let error = await #expect(throws: UploadError.self) {
      try await app.add(PatternSource(length: 10, access: .sequential), as: "pipe")
    }
    #expect(error?.side == .source)
  }
}

/// A source that knows its version and not its length.
private struct UnsizedSource: BlobSource {
  let source: PatternSource
  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    var info = try source.info(cancel)
    info.length = nil
    return info
  }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(try source.open(at: offset, cancel))
  }

  private final class Reader: BlobReader {
    private let reader: any BlobReader
    init(_ reader: any BlobReader) { self.reader = reader }
    var info: BlobInfo {
      var info = reader.info
      info.length = nil
      return info
    }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}

extension String {
  fileprivate func replacingSuffix(_ suffix: String, with other: String) -> String {
    hasSuffix(suffix) ? dropLast(suffix.count) + other : self
  }
}
