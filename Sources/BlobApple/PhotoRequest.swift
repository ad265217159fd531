#if canImport(Photos)
  import Blobs
  import Photos
  import Synchronization

  /// A request for data that PhotoKit is working on. Its end is reported once, and it can be cancelled before its number is
  /// known, since PhotoKit may deliver before `requestData` has returned.
  final class PhotoRequest: Sendable {
    private struct State {
      var number: PHAssetResourceDataRequestID?
      var isCancelled = false
      var hasEnded = false
    }
    private let state = Mutex(State())
    private let whenEnded: @Sendable (BlobError?) -> Void

    init(_ whenEnded: @escaping @Sendable (BlobError?) -> Void) { self.whenEnded = whenEnded }

    func begin(_ number: PHAssetResourceDataRequestID) {
      let isCancelled = state.withLock { state in
        state.number = number
        return state.isCancelled
      }
      if isCancelled { PHAssetResourceManager.default().cancelDataRequest(number) }
    }

    func cancel() {
      let number = state.withLock { state -> PHAssetResourceDataRequestID? in
        defer { state.isCancelled = true }
        return state.isCancelled || state.hasEnded ? nil : state.number
      }
      if let number { PHAssetResourceManager.default().cancelDataRequest(number) }
    }

    func end(_ error: BlobError?) {
      let isFirst = state.withLock { state in
        defer { state.hasEnded = true }
        return !state.hasEnded
      }
      if isFirst { whenEnded(error) }
    }
  }
#endif
