#if canImport(Photos)
  import Foundation
  import Photos
  import Synchronization

  /// Tells open readers that their asset was edited or deleted. The photo library calls it on a thread of its own.
  final class PhotoChanges: NSObject, PHPhotoLibraryChangeObserver, Sendable {
    static let shared = PhotoChanges()

    private struct Watch {
      let asset: PHAsset
      let changed: @Sendable () -> Void
    }
    private struct State {
      var next = 0
      var watches: [Int: Watch] = [:]
    }
    private let state = Mutex(State())

    private override init() {
      super.init()
      PHPhotoLibrary.shared().register(self)
    }

    /// Calls `changed` when the content of `asset` is another one, until `forget` is called with what this returns.
    func watch(_ asset: PHAsset, _ changed: @escaping @Sendable () -> Void) -> Int {
      state.withLock { state in
        state.next += 1
        state.watches[state.next] = Watch(asset: asset, changed: changed)
        return state.next
      }
    }

    func forget(_ number: Int) { state.withLock { _ = $0.watches.removeValue(forKey: number) } }

    func photoLibraryDidChange(_ change: PHChange) {
      let watches = state.withLock { Array($0.watches.values) }
      for watch in watches {
        guard let details = change.changeDetails(for: watch.asset) else { continue }
        if details.objectWasDeleted || details.assetContentChanged { watch.changed() }
      }
    }
  }
#endif
