#if canImport(Darwin)
  import BlobUpload
  import BlobURLSession
  import Blobs
  import Foundation

  extension BackgroundUploader {
    /// An uploader over the background `URLSession` with this identifier. Create one only for each identifier, early
    /// after the launch: the system delivers events to it from then on.
    ///
    /// - `destination`: its protocol must be tus or the IETF's. Build it without asking the server, since there may be
    ///   no network when the app is launched. Give it `rereading` if its credentials expire: uploads that the server refuses
    ///   because of them are `.waiting`, and go on with renewed ones, or at the next launch.
    /// - `journal`: may be shared with other uploaders and processes.
    /// - `spool`: a folder for this uploader alone. Neither `tmp` nor `Caches` will do, because the system deletes files
    ///   there. Foreign files are left alone. The folder is excluded from the device's backups, and on iOS its files can be
    ///   read while the device is locked, from the first unlock on.
    /// - `spoolBytes`: the folder never has more. A piece has at most a quarter of it; larger pieces wake the app less
    ///   often.
    /// - `overwrite`: files with other bytes at the destination are replaced.
    /// - `configure`: sets options of the session, for example `allowsCellularAccess` or `isDiscretionary`.
    /// - `reopening`: the source of an upload that an earlier launch has begun, by its identity; nil: it cannot be
    ///   opened now, and the upload waits until it is added again. When not given, it opens what `PhotoGallery` has listed, and
    ///   files. The path of an app's container may change with an
    ///   update, so give identities of your own where that matters. Called on any thread; must not block.
    /// - Throws if the protocol cannot go on at any byte, or this process has made an uploader with this identifier before: the
    ///   system's session ends only with the process, so keep the uploader, for example in a table by account.
    public convenience init(
      identifier: String, to destination: UploadDestination, journal: Journal, spool: BytePath,
      spoolBytes: Int64 = BackgroundUploader.usualSpool, overwrite: Bool = false,
      configure: (URLSessionConfiguration) -> Void = { _ in },
      reopening: @escaping @Sendable (BytePath) -> (any BlobSource)? = {
        PhotoAssetSource(identity: $0) ?? ($0.isAbsolute ? FileSource($0) : nil)
      }
    ) throws(UploadError) {
      try self.init(
        identifier, destination, journal: journal, tasks: URLSessionTasks(identifier, spool: spool, configure),
        direct: URLSessionTransport(),
        settings: BackgroundSettings(spool: spool, spoolBytes: spoolBytes, overwrite: overwrite),
        identifiers: .ofProcess, reopening: reopening)
    }
  }

  #if canImport(Photos)
    extension BackgroundUploader {
      /// Uploads a file of the photo library under its `path`, with its media type and its facts as metadata.
      /// A `reopening` of your own must give `PhotoAssetSource(identity:)` for its identity, as the default does.
      public func add(_ item: PhotoGallery.Item) async throws(UploadError) {
        try await add(
          item.source, as: item.path, identity: item.identity, contentType: item.contentType,
          metadata: item.facts.metadata)
      }
    }
  #endif
#endif
