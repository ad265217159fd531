import BlobHTTP
import Blobs

extension Uploader {
  /// Uploads one source as `path` below the destination, and returns when the server has all of it.
  ///
  /// With a journal, a later call for the same source, in this process or another, resumes the upload. A call for a
  /// source that has not changed since its upload was finished sends nothing and returns nil.
  ///
  /// - `identity`: identifies the source across runs; nil: `path`. For a file, its absolute path.
  /// - `metadata`: as `UploadTarget.metadata`.
  /// - `started`: called once the upload has begun, on any thread, with its progress, which any thread may poll; not
  ///   called if nothing is sent because the source was uploaded before. Must be short.
  /// - Throws when the upload cannot continue; `side` tells who must act. The same call goes on from what the server has.
  ///   Cancelling the task throws with side `.cancelled`, not a `CancellationError`.
  @discardableResult
  public func upload(
    _ source: any BlobSource, as path: BytePath, identity: BytePath? = nil,
    contentType: String = "application/octet-stream", metadata: [String: String] = [:], overwrite: Bool = false,
    started: (@Sendable (UploadProgress) -> Void)? = nil
  ) async throws(UploadError) -> UploadResult? {
    let info = try await readingSource { cancel, _ throws(BlobError) in try source.info(cancel) }
    var target = destination.target(path, length: info.length, contentType: contentType, overwrite: overwrite)
    target.modified = info.modified
    target.metadata = metadata
    guard let journal else {
      let progress = UploadProgress()
      started?(progress)
      return try await upload(source, info, to: target, progress: progress)
    }
    let id: Int64
    do { id = try await journal.destinationID(of: destination, overwrite: overwrite) } catch {
      throw UploadError(journal: error)
    }
    let item = UploadItem(source: source, info: info, identity: identity ?? path, target: target)
    return try await UploadQueue(self, journal: journal, destinationID: id).upload(item, started)
  }
}

extension UploadDestination {
  /// What the journal keeps of this destination.
  package func journaled(overwrite: Bool) -> JournalDestination {
    JournalDestination(
      endpoint: endpoint.text, protocolName: uploadProtocol.name, overwrite: overwrite, recipient: journaledRecipient,
      account: journaledAccount)
  }
}
