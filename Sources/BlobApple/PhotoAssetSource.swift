#if canImport(Photos)
  import Blobs
  import Foundation
  import Photos

  /// One file of an asset in the photo library: the original, the edit, the film of a Live Photo, the RAW beside a JPEG.
  ///
  /// Its bytes come from PhotoKit piece by piece. PhotoKit's thread waits while nobody reads, so memory stays bounded
  /// whatever the size of the asset, and nothing is copied to disk by this library. What is in iCloud only is downloaded by
  /// the system. `info.length` is always nil. PhotoKit tells a size from iOS 27 on, but it may become known during an
  /// upload, and a wrong one would make a photo that can never be uploaded: `PhotoGallery.Item.expectedLength` has it, for
  /// showing progress.
  ///
  /// `info.modified` is when the picture was taken, as on a camera's card; uploads ask the server to keep it.
  ///
  /// The version is the asset's modification date. While a reader is open, a change of the asset ends it with `.changed`.
  /// A download that breaks off is `.invalidated`: wrap the source in `ReopeningSource` to go on at the same byte.
  public struct PhotoAssetSource: BlobSource {
    private let source: DeliveredSource

    /// - Parameters:
    ///   - asset: the asset's `localIdentifier`.
    ///   - resource: which of its files.
    ///   - allowsNetwork: whether what is in iCloud only may be downloaded.
    ///   - capacity: bytes that are held between PhotoKit and the reader.
    ///   - progress: from 0 to 1, of a download from iCloud. PhotoKit calls it on a thread of its own.
    public init(
      asset: String, resource: AssetResource, allowsNetwork: Bool = true, capacity: Int = 1 << 20,
      progress: (@Sendable (Double) -> Void)? = nil
    ) {
      let delivery = PhotoDelivery(
        asset: asset, resource: resource, allowsNetwork: allowsNetwork, progress: progress)
      source = DeliveredSource(delivery, name: "photo \(resource.filename)", capacity: capacity)
    }

    /// The file with this `PhotoGallery.Item.identity`, for the `reopening` of a `BackgroundUploader`. nil if `identity` is
    /// none of a photo. Whether the asset still exists is found out when it is opened. `progress` as above.
    public init?(identity: BytePath, allowsNetwork: Bool = true, progress: (@Sendable (Double) -> Void)? = nil) {
      guard let identity = PhotoIdentity(identity) else { return nil }
      self.init(
        asset: identity.asset, resource: identity.resource, allowsNetwork: allowsNetwork, progress: progress)
    }

    public var access: BlobAccess { source.access }

    /// Throws `.notFound` when the asset was deleted, or is not among those that the user has selected for this app.
    public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

    public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      try source.open(at: offset, cancel)
    }

    public func closeUntilNeeded() { source.closeUntilNeeded() }
  }

  /// PhotoKit's part of it. Everything that can be decided without PhotoKit is decided elsewhere.
  private struct PhotoDelivery: ByteDelivery {
    let asset: String
    let resource: AssetResource
    let allowsNetwork: Bool
    let progress: (@Sendable (Double) -> Void)?

    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { Self.info(of: try find().asset, resource) }

    static func info(of asset: PHAsset, _ resource: AssetResource) -> BlobInfo {
      let changed = asset.modificationDate.map { "\($0.timeIntervalSince1970)" } ?? ""
      let kind = resource.kind.map { "\($0.rawValue)" } ?? ""
      let ordinal = resource.ordinal == 0 ? "" : " \(resource.ordinal)"
      return BlobInfo(
        length: nil, validator: Validator(version: "photo \(changed) \(kind) \(resource.filename)\(ordinal)"),
        instanceLasts: true,
        modified: asset.creationDate.map { Int64(clamped: $0.timeIntervalSince1970 * 1e9) })
    }

    private func find() throws(BlobError) -> (asset: PHAsset, resource: PHAssetResource) {
      let found = PHAsset.fetchAssets(withLocalIdentifiers: [asset], options: nil)
      guard let asset = found.firstObject else {
        throw BlobError(
          .notFound,
          "open photo \(resource.filename): it was deleted, or is not among the photos that this app may see")
      }
      let all = PHAssetResource.assetResources(for: asset)
      guard let index = AssetResource.all(all).firstIndex(of: resource) else {
        throw BlobError(.notFound, "open photo \(resource.filename): the asset has no such file any more")
      }
      return (asset, all[index])
    }

    func start(
      receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool, end: @escaping @Sendable (BlobError?) -> Void
    ) -> @Sendable () -> Void {
      let found: (asset: PHAsset, resource: PHAssetResource)
      do throws(BlobError) {
        found = try find()
      } catch {
        end(error)
        return {}
      }
      let name = resource.filename
      let request = PhotoRequest(
        cancelling: { PHAssetResourceManager.default().cancelDataRequest($0) }, end)
      let handlers = PhotoRequest.Handlers(of: request, "read photo \(name)")
      let options = PHAssetResourceRequestOptions()
      options.isNetworkAccessAllowed = allowsNetwork
      options.progressHandler = { [progress] fraction in
        // An empty piece: the system works on the request.
        _ = receive(UnsafeRawBufferPointer(start: nil, count: 0))
        progress?(fraction)
      }
      let version = Self.info(of: found.asset, resource).validator
      let watch = PhotoChanges.shared.watches.watch(found.asset) { [resource] asset in
        Self.info(of: asset, resource).validator == version
      } changed: { [request] in
        request.end(
          because: BlobError(.changed, "read photo \(name): it was edited or deleted meanwhile"))
      }
      request.begin(
        PHAssetResourceManager.default().requestData(
          for: found.resource, options: options,
          dataReceivedHandler: { [handlers] data in
            // `receive` returns false if no further piece is wanted. Its owner then cancels the request, so the result
            // is not needed here.
            withExtendedLifetime(handlers) { _ = data.withUnsafeBytes { receive($0) } }
          },
          completionHandler: { [handlers] error in
            handlers.request.complete(
              error.map { error in
                let known = error as NSError
                return PhotoFailure.error(
                  domain: known.domain, code: known.code, underlying: Self.underlying(known),
                  known.localizedDescription,
                  "read photo \(name)", cause: error)
              })
          }))
      return {
        request.cancel()
        PhotoChanges.shared.watches.forget(watch)
      }
    }
  }

  extension PhotoDelivery {
    /// The errors that have caused this one, the nearest first.
    private static func underlying(_ error: NSError) -> [PhotoFailure.Identity] {
      var (found, last) = ([PhotoFailure.Identity](), error)
      // An error might name itself as its cause.
      while found.count < 8, let next = last.userInfo[NSUnderlyingErrorKey] as? NSError {
        found.append(PhotoFailure.Identity(domain: next.domain, code: next.code))
        last = next
      }
      return found
    }
  }

  extension AssetResource {
    /// All resources of an asset, in the library's order.
    static func all(_ resources: [PHAssetResource]) -> [AssetResource] {
      resources.map { AssetResource(kind: Kind(rawValue: $0.type.rawValue), filename: $0.originalFilename) }.numbered()
    }
  }
#endif
