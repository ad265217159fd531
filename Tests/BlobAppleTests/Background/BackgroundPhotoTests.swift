import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// Sources like those of the photo library: they tell no length, deliver from their first byte on, and may be edited.
@Suite(.timeLimit(.minutes(2))) struct BackgroundPhotoTests {
  private let film = PatternSource(length: 300_000, seed: 6)

  @Test(arguments: BackgroundProtocol.allCases)
  func aFilmIsDeliveredOnceForAllItsPieces(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol)
    let delivery = try await uploaded(by: phone, to: server)
    #expect(phone.daemon.started.filter { $0.task.length > 0 }.count > 10)
    #expect(delivery.state.withLock { $0.begun } == 1)
    // Nothing holds the delivery when the upload has ended.
    try await eventually { delivery.state.withLock { $0.stopped == [1] } }
  }

  /// The same while the app is in front.
  @Test(arguments: BackgroundProtocol.allCases)
  func aFilmIsDeliveredOnceForAllPartsInFront(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let destination = UploadDestination(
      endpoint: server.endpoint, uploadProtocol: uploadProtocol.uploadProtocol,
      limits: PartLimits(largest: 16 << 10, firstPart: 0))
    let delivery = FakeDelivery(film, pieceSize: 10_000)
    let source = DeliveredSource(delivery, name: "a film", capacity: 20_000)
    _ = try await Uploader(destination, transport: SocketTransport()).upload(source, as: "film.mov")
    #expect(server.has("film.mov", film))
    #expect(delivery.state.withLock { $0.begun } == 1)
  }

  /// From then on an app can show a bar.
  @Test(arguments: BackgroundProtocol.allCases)
  func theLengthIsKnownOnceTheSourceHasEnded(_ uploadProtocol: BackgroundProtocol) async throws {
    let (server, phone, app) = try await Phone.holding(uploadProtocol.uploadProtocol)
    let photo = PatternSource(length: 7000, seed: 1)
    let events = app.uploader.events()
    let ended = Task { () -> BackgroundUpload? in
      for await upload in events { if case .finished = upload.state { return upload } }
      return nil
    }
    try await app.add(
      DeliveredSource(FakeDelivery(photo, pieceSize: 1000), name: "a photo", capacity: 2000), as: "a.heic")
    try await eventually { phone.daemon.started.contains { $0.task.length == 7000 } }
    #expect(app.uploader.uploads.map(\.length) == [7000])
    phone.daemon.isHeld = false
    let upload = try #require(await ended.value)
    #expect(upload.length == 7000 && upload.sent == 7000)
    #expect(server.has("a.heic", photo))
  }

  /// Up to 64 KiB that a reader has read are kept for sending them again.
  @Test func aSmallPieceThatBreaksNeedsNoOtherDelivery() async throws {
    let server = try ServedFolder()
    let isFirst = Atomic(true)
    let daemon = Daemon(fault: { _, task in
      guard task.request.headers["Upload-Offset"] == "163840" else { return nil }
      return isFirst.exchange(false, ordering: .relaxed) ? .breaksAfter(5000) : nil
    })
    let phone = try Phone(server.endpoint, Tus(), daemon: daemon)
    let delivery = try await uploaded(by: phone, to: server)
    #expect(delivery.state.withLock { $0.begun } == 1)
  }

  /// The delivery of the film after its upload.
  private func uploaded(by phone: Phone, to server: ServedFolder) async throws -> FakeDelivery {
    let app = try await phone.launch()
    let delivery = FakeDelivery(film, pieceSize: 10_000)
    async let end = app.end(of: "film.mov")
    try await app.add(DeliveredSource(delivery, name: "a film", capacity: 20_000), as: "film.mov")
    #expect(await end.isFinished)
    #expect(server.has("film.mov", film))
    return delivery
  }

  /// A photo that is edited, or made a favourite, while a piece of it waits at the system.
  @Test(arguments: BackgroundProtocol.allCases, [70_000, 4096])
  func anEditedPhotoBeginsAnew(_ uploadProtocol: BackgroundProtocol, length: Int64) async throws {
    let (server, phone, app) = try await Phone.holding(uploadProtocol.uploadProtocol)
    let daemon = phone.daemon
    let now = PatternSource(length: length, seed: 8, knowsLength: false)
    let photo = EditedPhoto([PatternSource(length: 70_000, seed: 7, knowsLength: false), now])
    async let end = app.end(of: "film.mov")
    try await app.add(photo, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    photo.edit()
    daemon.isHeld = false
    let last = await end
    #expect(last.isFinished, "\(String(describing: last))")
    #expect(server.has("film.mov", now))
    #expect(phone.names.isEmpty && phone.largestSpool <= phone.settings.spoolBytes)
  }

  /// A photo that is edited while the system has its only piece, and added again: nobody reads the source once more.
  @Test(arguments: BackgroundProtocol.allCases, [true, false])
  func anEditThatIsAddedDuringTheLastPieceIsUploaded(
    _ uploadProtocol: BackgroundProtocol, knowsLength: Bool
  ) async throws {
    let (server, phone, app) = try await Phone.holding(uploadProtocol.uploadProtocol, spoolBytes: 400_000) {
      $0.overwrite = true
    }
    let daemon = phone.daemon
    let versions = [7, 8].map { PatternSource(length: 7000, seed: $0, knowsLength: knowsLength) }
    let photo = EditedPhoto(versions)
    async let end = app.end(of: "a.heic")
    try await app.add(photo, as: "a.heic")
    try await eventually { daemon.started.contains { $0.task.length == 7000 } }
    // The same version once more is the same upload.
    try await app.add(photo, as: "a.heic")
    photo.edit()
    try await app.add(photo, as: "a.heic")
    daemon.isHeld = false
    let last = await end
    #expect(last.isFinished, "\(String(describing: last))")
    #expect(server.has("a.heic", versions[1]))
    #expect(daemon.bytes == 14_000 && phone.names.isEmpty)
  }

  /// A source that changes each time it is read does not keep the app busy for good.
  @Test func aPhotoThatIsAlwaysEditedIsGivenUp() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    let app = try await phone.launch()
    let photo = EditedPhoto((0..<100).map { PatternSource(length: 70_000, seed: $0, knowsLength: false) })
    photo.isEditedAtOpening = true
    async let end = app.end(of: "film.mov")
    try await app.add(photo, as: "film.mov")
    guard case .failed(let error) = await end else {
      Issue.record("the upload did not fail")
      return
    }
    #expect(error.side == .source && (error.cause as? BlobError)?.code == .changed)
    #expect(3..<50 ~= photo.version)
  }

  /// A server that answers with success before the body was sent cannot have it.
  @Test(arguments: ["Upload-Complete", "X-Nothing"])
  func anEarlySuccessIsNotBelieved(_ field: String) async throws {
    let server = try ServedFolder()
    let source = PatternSource(length: 70_000, seed: 3)
    let daemon = Daemon(fault: { number, _ in number == 0 ? .answersWith(201, [field: "?1"]) : nil })
    let phone = try Phone(server.endpoint, IETFResumable(), spoolBytes: 400_000, daemon: daemon)
    let app = try await phone.launch()
    async let end = app.end(of: "film.mov")
    try await app.add(source, as: "film.mov")
    let last = await end
    #expect(last.isFinished, "\(String(describing: last))")
    #expect(server.has("film.mov", source))
  }
}
