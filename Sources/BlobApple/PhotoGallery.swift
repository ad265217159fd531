#if canImport(Photos)
  import BlobMedia
  import Blobs
  import Foundation
  import Photos

  /// The assets of the photo library, or of one album, as items to upload, oldest first.
  ///
  /// PhotoKit leaves out hidden assets, and of a burst all but the photos that the user or the system has picked.
  ///
  /// The library is not loaded: PhotoKit gives assets as they are asked for, and `next` asks for one page. It belongs to one
  /// thread at a time, and blocks; `items` is for asynchronous code, and does not block.
  public final class PhotoGallery {
    /// One file of an asset, ready to be uploaded.
    public struct Item: Sendable {
      /// The asset's `localIdentifier`, which stays the same on this device.
      public let asset: String
      /// Which of the asset's files it is.
      public let resource: AssetResource
      /// The name at the destination, which is unique within the asset only: a library may have many `IMG_0001.HEIC`.
      public let name: String
      /// The kind, dates and pairs of the file, for protocols that transmit metadata.
      public let facts: GalleryFacts
      /// The bytes of the file as the library tells them, from iOS 27 and macOS 27 on; nil: not known. It is a total for
      /// showing progress, and no upload relies on it: what counts is what the library delivers.
      public let expectedLength: Int64?
      /// The bytes of the file. Opening it may download them from iCloud.
      public private(set) var source: PhotoAssetSource
      let allowsNetwork: Bool

      /// Identifies the file in later launches of the app: `PhotoAssetSource(identity:)` opens it again.
      public var identity: BytePath { PhotoIdentity(asset: asset, resource: resource).path }

      /// The media type, by the name.
      public var contentType: String { ContentType.of(BytePath(name)) }

      /// The same file with a source that calls `progress`, from 0 to 1, while the system downloads it from iCloud. No byte is
      /// sent meanwhile. PhotoKit calls it on a thread of its own.
      public func reportingDownload(to progress: @escaping @Sendable (Double) -> Void) -> Item {
        var item = self
        item.source = PhotoAssetSource(
          asset: asset, resource: resource, allowsNetwork: allowsNetwork, progress: progress)
        return item
      }

      /// A path for the destination that no other file of the library has: `<asset>/<name>`, for example
      /// `A1B2…/IMG_0001.HEIC`. `PhotoUploads` uses the same paths unless it is given others.
      public var path: BytePath { PhotoPath.usual(asset, name) }
    }

    private let assets: PHFetchResult<PHAsset>
    private let plan: AssetPlan
    private let allowsNetwork: Bool
    private var position = PagePosition()

    /// Throws `.permission` where the user has not allowed access, and `.notFound` for an unknown album.
    ///
    /// - Parameters:
    ///   - album: the `localIdentifier` of an album; nil: the whole library.
    ///   - edits: which of original and edit are wanted where both exist.
    ///   - allowsNetwork: whether what is in iCloud only may be downloaded when it is read.
    public convenience init(
      album: String? = nil, edits: GalleryEdits = .both, allowsNetwork: Bool = true
    ) throws(BlobError) {
      try self.init(edits, allowsNetwork) { options throws(BlobError) in
        guard let album else { return PHAsset.fetchAssets(with: options) }
        let found = PHAssetCollection.fetchAssetCollections(withLocalIdentifiers: [album], options: nil)
        guard let collection = found.firstObject else {
          throw BlobError(.notFound, "open album \(album): there is none with this identifier")
        }
        return PHAsset.fetchAssets(in: collection, options: options)
      }
    }

    /// The assets with these `localIdentifier`s, as a picker gives them. Those that do not exist, or that the user has not
    /// selected for this app, are left out. Throws `.permission` where the user has not allowed access.
    public convenience init(
      assets: [String], edits: GalleryEdits = .both, allowsNetwork: Bool = true
    ) throws(BlobError) {
      try self.init(edits, allowsNetwork) { options in
        PHAsset.fetchAssets(withLocalIdentifiers: assets, options: options)
      }
    }

    private init(
      _ edits: GalleryEdits, _ allowsNetwork: Bool,
      _ fetch: (PHFetchOptions) throws(BlobError) -> PHFetchResult<PHAsset>
    ) throws(BlobError) {
      switch PHPhotoLibrary.authorizationStatus(for: .readWrite) {
      // With limited access, PhotoKit gives the assets that the user has selected.
      case .authorized, .limited: break
      case .notDetermined:
        throw BlobError(
          .permission, "open the photo library: ask for access first (PHPhotoLibrary.requestAuthorization)")
      default: throw BlobError(.permission, "open the photo library: access is denied. Allow it in Settings")
      }
      let options = PHFetchOptions()
      options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: true)]
      assets = try fetch(options)
      plan = AssetPlan(edits)
      self.allowsNetwork = allowsNetwork
    }

    /// Assets, not items: one has several files.
    public var count: Int { assets.count }

    /// The items of the next `pageSize` assets. An asset may have none: iCloud has told only that it exists, or there is
    /// only a stand-in for its photo. If none of them has any, those of the next assets follow. Empty: there are no more.
    public func next(_ pageSize: Int = 100) -> [Item] {
      position.next(pageSize, of: assets.count) { page in
        autoreleasepool { page.flatMap { items(of: assets.object(at: $0)) } }
      }
    }

    /// The library or an album for asynchronous code: `for try await item in PhotoGallery.items()`. PhotoKit is asked on a
    /// thread of the loop, for one page at a time. The loop throws what the initializer throws, and `.cancelled` if its task
    /// is cancelled.
    public static func items(
      album: String? = nil, edits: GalleryEdits = .both, allowsNetwork: Bool = true
    ) -> some AsyncSequence<Item, BlobError> & Sendable {
      pages { () throws(BlobError) in try PhotoGallery(album: album, edits: edits, allowsNetwork: allowsNetwork) }
    }

    /// The assets with these `localIdentifier`s for asynchronous code, as for the initializer.
    public static func items(
      assets: [String], edits: GalleryEdits = .both, allowsNetwork: Bool = true
    ) -> some AsyncSequence<Item, BlobError> & Sendable {
      pages { () throws(BlobError) in try PhotoGallery(assets: assets, edits: edits, allowsNetwork: allowsNetwork) }
    }

    private static func pages(
      of open: @escaping @Sendable () throws(BlobError) -> PhotoGallery
    ) -> PagedItems<Item> {
      PagedItems { () throws(BlobError) in
        let gallery = try open()
        return { gallery.next() }
      }
    }

    private func items(of asset: PHAsset) -> [Item] {
      let found = PHAssetResource.assetResources(for: asset)
      let resources = AssetResource.all(found)
      let captured = asset.creationDate.map { CaptureDate(secondsSince1970: Int64(clamped: $0.timeIntervalSince1970)) }
      let items = plan.items(of: resources)
      return items.map { item in
        Item(
          asset: asset.localIdentifier, resource: resources[item.index], name: item.name,
          facts: item.facts(among: items, captured: captured), expectedLength: Self.expectedLength(found[item.index]),
          source: PhotoAssetSource(
            asset: asset.localIdentifier, resource: resources[item.index], allowsNetwork: allowsNetwork),
          allowsNetwork: allowsNetwork)
      }
    }

    private static func expectedLength(_ resource: PHAssetResource) -> Int64? {
      guard #available(iOS 27, macOS 27, *) else { return nil }
      return AssetResource.expectedLength(of: resource.dataSize)
    }
  }
#endif
