import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Foundation
import Testing

@testable import BlobApple

/// Versions of a source that come at a bad time.
@Suite(.timeLimit(.minutes(2))) struct BackgroundEditTests {
  /// The app is terminated before the new version is looked at.
  @Test(arguments: BackgroundProtocol.allCases, [true, false])
  func anEditIsUploadedByTheNextLaunch(_ kind: BackgroundProtocol, addsAgain: Bool) async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, kind.uploadProtocol) { $0.overwrite = true }
    let app = try await phone.launch()
    let source = EditedSource()
    try await app.uploader.add(source, as: "a.heic")
    try await eventually { source.isOpened.value }
    if addsAgain { try await app.uploader.add(source.new, as: "a.heic", metadata: ["v": "2"]) }
    source.isEdited.value = true
    // The upload of the old version has ended.
    try await eventually {
      guard source.isEdited.value, let entry = try? await app.journal.unfinished().first else { return false }
      return entry.owner == nil
    }
    app.life.kill()
    await app.journal.close()
    let next = try await phone.launch(["a.heic": source.new])
    _ = try await next.uploader.destinationID()
    try await eventually { next.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", source.new))
    #expect(try await next.journal.unfinished().isEmpty)
  }

  /// An `Uploader` sends the first version; the second is added in the background, and cancelled.
  @Test(arguments: [true, false]) func aVersionThatWasCancelledWhileItWaitedStaysAway(all: Bool) async throws {
    let server = try ServedFolder()
    let mayAnswer = Flag(false)
    let direct = FaultyTransport(SocketTransport()) { _, _ in .wait { mayAnswer.value } }
    let phone = try Phone(server.endpoint, Tus()) { $0.overwrite = true }
    let app = try await phone.launch()
    let (old, new) = (PatternSource(length: 7000, seed: 1), PatternSource(length: 7000, seed: 2))
    let front = Uploader(phone.destination, transport: direct, journal: app.journal)
    let sending = Task { [front] in try await front.upload(old, as: "film.mov", overwrite: true) }
    try await eventually { direct.requests == 1 }
    try await app.uploader.add(new, as: "film.mov")
    try await eventually { if case .waiting? = app.uploader.uploads.first?.state { true } else { false } }
    if all { try await app.uploader.cancelAll() } else { try await app.uploader.cancel("film.mov") }
    mayAnswer.value = true
    _ = try await sending.value
    app.life.kill()
    let next = try await phone.launch(["film.mov": new])
    _ = try await next.uploader.destinationID()
    try await eventually { next.uploader.uploads.isEmpty }
    #expect(server.has("film.mov", old))
  }
}

/// A photo that is edited while it is read. Looking at its new version takes a while.
private final class EditedSource: BlobSource {
  let (isOpened, isEdited) = (Flag(false), Flag(false))
  let (old, new) = (PatternSource(length: 7000, seed: 1), PatternSource(length: 7000, seed: 2))

  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    if !isEdited.value { return try old.info(cancel) }
    usleep(200_000)
    return try new.info(cancel)
  }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    isOpened.value = true
    while !isEdited.value { usleep(1000) }
    return try new.open(at: offset, cancel)
  }
}
