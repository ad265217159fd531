#if canImport(Photos)
  import BlobUpload
  import Blobs

  extension Uploader {
    /// Uploads a file of the photo library under its `path`, with its media type and its facts as metadata. A later call for
    /// the same file, in this process or another, resumes the upload. The other parameters, what it returns and what it
    /// throws are those of `upload(_:as:)`.
    ///
    /// - `overwrite`: a photo that was edited replaces its earlier version.
    @discardableResult
    public func upload(
      _ item: PhotoGallery.Item, overwrite: Bool = false, started: (@Sendable (UploadProgress) -> Void)? = nil
    ) async throws(UploadError) -> UploadResult? {
      try await upload(
        item.source, as: item.path, identity: item.identity, contentType: item.contentType,
        metadata: item.facts.metadata, overwrite: overwrite, started: started)
    }

    /// Starts to upload a file of the photo library in a task of its own, and returns at once.
    public func start(_ item: PhotoGallery.Item, overwrite: Bool = false) -> RunningUpload {
      start(
        item.source, as: item.path, identity: item.identity, contentType: item.contentType,
        metadata: item.facts.metadata, overwrite: overwrite)
    }
  }
#endif
