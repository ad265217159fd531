import BlobTesting
import Blobs
import Synchronization

/// A photo with versions of which `edit` makes the next one the present one.
final class EditedPhoto: BlobSource {
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
