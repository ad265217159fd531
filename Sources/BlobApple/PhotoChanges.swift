#if canImport(Photos)
  import Foundation
  import Photos

  /// Passes the changes of the photo library on to open readers. The library calls it on a thread of its own.
  final class PhotoChanges: NSObject, PHPhotoLibraryChangeObserver, Sendable {
    static let shared = PhotoChanges()

    let watches = AssetWatches<PHAsset>()

    private override init() {
      super.init()
      PHPhotoLibrary.shared().register(self)
    }

    func photoLibraryDidChange(_ change: PHChange) {
      watches.apply { asset in
        guard let details = change.changeDetails(for: asset) else { return nil }
        let after: AnyObject? = details.objectAfterChanges
        return AssetChange(
          after: details.objectWasDeleted ? nil : after as? PHAsset, hasOtherContent: details.assetContentChanged)
      }
    }
  }
#endif
