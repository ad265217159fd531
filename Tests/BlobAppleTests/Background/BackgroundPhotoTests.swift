import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// Sources like those of the photo library, which may be edited while they are sent.
@Suite(.timeLimit(.minutes(2))) struct BackgroundPhotoTests {
  /// A photo that is edited, or made a favourite, while a piece of it waits at the system.
  @Test(arguments: BackgroundProtocol.allCases, [70_000, 4096])
  func anEditedPhotoBeginsAnew(_ uploadProtocol: BackgroundProtocol, length: Int64) async throws {
    let server = try ServedFolder()
    let daemon = Daemon()
    daemon.isHeld = true
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon)
    let app = try await phone.launch()
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

/// A photo with versions of which `edit` makes the next one the present one.
private final class EditedPhoto: BlobSource {
  private let versions: [PatternSource]
  private let state = Mutex((version: 0, isEditedAtOpening: false))

  init(_ versions: [PatternSource]) { self.versions = versions }

  var version: Int { state.withLock { $0.version } }
  var isEditedAtOpening: Bool {
    get { state.withLock { $0.isEditedAtOpening } }
    set { state.withLock { $0.isEditedAtOpening = newValue } }
  }
  func edit() { state.withLock { $0.version = min($0.version + 1, versions.count - 1) } }

  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try versions[version].info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if isEditedAtOpening { edit() }
    let version = version
    return Reader(try versions[version].open(at: offset, cancel), self, version)
  }

  private final class Reader: BlobReader {
    let reader: any BlobReader
    let photo: EditedPhoto
    let version: Int

    init(_ reader: any BlobReader, _ photo: EditedPhoto, _ version: Int) {
      self.reader = reader
      self.photo = photo
      self.version = version
    }

    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {
      if photo.version != version { throw BlobError(.changed, "read a photo: it was changed meanwhile") }
    }
  }
}
