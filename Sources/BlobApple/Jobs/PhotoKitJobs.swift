#if canImport(Photos)
  import BlobHTTP
  import BlobURLSession
  import Blobs
  import Foundation
  import Photos
  import Synchronization

  /// The photo library and the background upload jobs of the system, by PhotoKit.
  ///
  /// Jobs can be made only by an extension at `com.apple.photos.background-upload` whose app has full access to photos and
  /// has switched the extension on.
  @available(iOS 26.1, macOS 27.0, *)
  public struct PhotoKitJobs: PhotoJobSystem {
    /// Creates a connection to the shared photo library. It asks the system nothing yet.
    public init() {}

    public var limit: Int { PHAssetResourceUploadJob.jobLimit }

    public var listsJobsUnderWay: Bool {
      if #available(iOS 26.5, *) { return true }
      return false
    }

    public func jobs() throws(PhotoJobError) -> [PhotoJob] {
      // Asked once: a job that fails between two questions would lose its retry.
      let retriable = Self.fetch(.retry)
      let mayRetry = Set(retriable.map { $0.localIdentifier })
      let ended = Self.fetch(.acknowledge)
      // A failed job may be among those to retry only.
      var found = Dictionary(
        (ended + retriable).map { ($0.localIdentifier, $0) }, uniquingKeysWith: { first, _ in first })
      if #available(iOS 26.5, *) {
        // The system acknowledges a job that was cancelled by itself.
        for job in Self.fetch(.process) where job.state != .cancelled { found[job.localIdentifier] = job }
      }
      return found.values.map { job in
        let request = Self.destination(of: job)
        return PhotoJob(
          id: job.localIdentifier, url: request?.url?.absoluteString ?? "",
          state: Self.state(job, mayRetry: mayRetry.contains(job.localIdentifier)),
          field: { request?.value(forHTTPHeaderField: $0) })
      }
    }

    /// nil: the job has none. PhotoKit declares that it always has one, and some on devices do not; Swift's import of the
    /// property would trap.
    private static func destination(of job: PHAssetResourceUploadJob) -> URLRequest? {
      job.value(forKey: "destination") as? URLRequest
    }

    private static func state(_ job: PHAssetResourceUploadJob, mayRetry: Bool) -> PhotoJob.State {
      switch job.state {
      case .succeeded: return .succeeded
      case .failed: return .failed(reason(job), mayRetry: mayRetry)
      default: return .underWay
      }
    }

    private static func reason(_ job: PHAssetResourceUploadJob) -> String {
      guard #available(iOS 26.4, *), let error = job.error as NSError? else { return "the upload has failed" }
      return "\(error.localizedDescription) (\(error.domain) \(error.code))"
    }

    private static func fetch(_ action: PHAssetResourceUploadJob.Action) -> [PHAssetResourceUploadJob] {
      let found = PHAssetResourceUploadJob.fetchJobs(action: action, options: nil)
      return (0..<found.count).map { found.object(at: $0) }
    }

    public func acknowledge(_ job: PhotoJob) throws(PhotoJobError) {
      try change(job, "acknowledge", among: Self.fetch(.acknowledge) + Self.fetch(.retry)) { $0.acknowledge() }
    }

    public func cancel(_ job: PhotoJob) throws(PhotoJobError) {
      guard #available(iOS 26.5, *) else { throw PhotoJobError(.gone, "jobs under way are not listed") }
      try change(job, "cancel", among: Self.fetch(.process)) { $0.cancel() }
    }

    public func retry(_ job: PhotoJob, to destination: HTTPRequest?) throws(PhotoJobError) {
      let request = try destination.map { request throws(PhotoJobError) in try Self.urlRequest(request) }
      try change(job, "retry", among: Self.fetch(.acknowledge) + Self.fetch(.retry)) { $0.retry(destination: request) }
    }

    public func create(
      _ resource: AssetResource, of asset: PhotoAsset, to destination: HTTPRequest
    ) throws(PhotoJobError) {
      let resources = try Self.resources(asset.id)
      guard let found = AssetResource.all(resources).firstIndex(of: resource).map({ resources[$0] }) else {
        throw PhotoJobError(.gone, "\(resource.filename): the asset has no such file any more")
      }
      let request = try Self.urlRequest(destination)
      try Self.perform("register \(destination.url)") {
        #if os(macOS)
          _ = PHAssetResourceUploadJobChangeRequest.creationRequestForJob(destination: request, resource: found)
        #else
          if #available(iOS 26.4, *) {
            _ = PHAssetResourceUploadJobChangeRequest.creationRequestForJob(destination: request, resource: found)
          } else {
            PHAssetResourceUploadJobChangeRequest.createJob(destination: request, resource: found)
          }
        #endif
      }
    }

    public func assets() throws(PhotoJobError) -> () -> [PhotoAsset] {
      let options = PHFetchOptions()
      options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: true)]
      let found = PHAsset.fetchAssets(with: options)
      var position = 0
      return {
        let end = min(position + 500, found.count)
        defer { position = end }
        return autoreleasepool {
          (position..<end).map { index in
            let asset = found.object(at: index)
            return PhotoAsset(
              id: asset.localIdentifier, version: asset.modificationDate.map { "\($0.timeIntervalSince1970)" } ?? "",
              created: asset.creationDate.map { Int64(clamped: $0.timeIntervalSince1970) })
          }
        }
      }
    }

    public func resources(of asset: PhotoAsset) throws(PhotoJobError) -> [AssetResource] {
      AssetResource.all(try Self.resources(asset.id))
    }

    private static func resources(_ id: String) throws(PhotoJobError) -> [PHAssetResource] {
      guard let asset = PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject else {
        throw PhotoJobError(.gone, "the photo was deleted")
      }
      return PHAssetResource.assetResources(for: asset)
    }

    // MARK: Changes

    private func change(
      _ job: PhotoJob, _ verb: String, among jobs: [PHAssetResourceUploadJob],
      _ body: (PHAssetResourceUploadJobChangeRequest) -> Void
    ) throws(PhotoJobError) {
      guard let known = jobs.first(where: { $0.localIdentifier == job.id }) else {
        throw PhotoJobError(.gone, "\(verb) \(job.url): the system has no such job any more")
      }
      var isGone = false
      try Self.perform("\(verb) \(job.url)") {
        if let request = PHAssetResourceUploadJobChangeRequest(for: known) { body(request) } else { isGone = true }
      }
      if isGone { throw PhotoJobError(.gone, "\(verb) \(job.url): the job cannot be changed any more") }
    }

    private static func perform(_ operation: String, _ body: () -> Void) throws(PhotoJobError) {
      do {
        try PHPhotoLibrary.shared().performChangesAndWait(body)
      } catch {
        let known = error as NSError
        throw PhotoJobError(domain: known.domain, code: known.code, "\(operation): \(known.localizedDescription)")
      }
    }

    private static func urlRequest(_ request: HTTPRequest) throws(PhotoJobError) -> URLRequest {
      guard let made = URLRequest(request) else { throw PhotoJobError(.failed, "\(request.url) is no URL") }
      return made
    }
  }
#endif
