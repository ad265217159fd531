import BlobUpload
import Blobs

// Uploads that have finished.
extension BackgroundUploader {
  /// The uploads to this destination that have finished at this time or later, in seconds since 1970, in this launch or
  /// an earlier one. Each has the time in `ended`; they are in the order in which they were added.
  ///
  /// `events` tells only those that finish while a loop reads it, and the system may upload in the night, with the app
  /// launched in the background. To show those as well, call this when the app comes to the front, after `events`, with the
  /// time of the call before, which the app must keep. One that `events` has told since that call is told again. Those of an `Uploader`, and of uploaders with other identifiers, to the same
  /// destination are among them; those of other accounts are not. Of a source that was uploaded in several versions, the last
  /// one is told.
  public func finished(since time: Int64) async throws(UploadError) -> [BackgroundUpload] {
    let id = try await destinationID()
    do {
      return try await journal.finished(at: [id], since: time).map { entry in
        let intent = entry.intent
        var upload = BackgroundUpload(intent.path, identity: intent.source, length: intent.length)
        upload.acknowledged = entry.acknowledged
        upload.sent = entry.acknowledged
        upload.ended = entry.updated
        upload.state = .finished(UploadResult(location: entry.location, length: intent.length))
        return upload
      }
    } catch {
      throw UploadError(journal: error)
    }
  }
}
