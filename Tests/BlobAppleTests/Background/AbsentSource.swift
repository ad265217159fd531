import BlobTesting
import Blobs
import Synchronization

/// A source that cannot be opened while it is absent, as a photo in iCloud that is not downloaded while there is no network.
final class AbsentSource: BlobSource {
  private let source: PatternSource
  private let state: Mutex<(isAbsent: Bool, openings: Int)>

  init(_ source: PatternSource, isAbsent: Bool = true) {
    self.source = source
    state = Mutex((isAbsent, 0))
  }

  var isAbsent: Bool {
    get { state.withLock { $0.isAbsent } }
    set { state.withLock { $0.isAbsent = newValue } }
  }
  var openings: Int { state.withLock { $0.openings } }

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let isAbsent = state.withLock { state in
      state.openings += 1
      return state.isAbsent
    }
    if isAbsent { throw BlobError(.invalidated, "read photo IMG_1.HEIC: the network connection was lost") }
    return try source.open(at: offset, cancel)
  }
}
