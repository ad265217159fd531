import BlobUpload
import Blobs

// Uploads that were given up.
extension BackgroundUploader {
  /// The uploads to this destination that were given up, in this launch or an earlier one, and were not added again: the
  /// oldest first, each with its reason. Those of an `Uploader` to the same destination are among them, and those of other
  /// accounts and of uploaders with other identifiers are not. `cancelAll` forgets them.
  public func failures() async throws(UploadError) -> [BackgroundUpload] {
    try await failed().map { failed in
      let (entry, intent) = (failed.entry, failed.entry.intent)
      var upload = BackgroundUpload(intent.path, identity: intent.source, length: intent.length)
      upload.acknowledged = entry.acknowledged
      upload.sent = entry.acknowledged
      upload.ended = entry.updated
      upload.state = .failed(UploadError(.giveUp, .file, entry.error ?? "\(intent.path): it was given up"))
      return upload
    }
  }

  /// Adds the sources again whose uploads as `name` were given up, with the type and the metadata that they were added with.
  /// The sources are opened by `reopening`. Does nothing if no such upload was given up.
  /// - Throws as `add`, and if a source cannot be opened now.
  public func tryAgain(_ name: BytePath) async throws(UploadError) {
    for upload in try await failed() where upload.entry.intent.path == name {
      guard let again = added(upload) else {
        throw UploadError(.giveUp, .source, "\(name): its source cannot be opened now, since `reopening` gives none")
      }
      try await add(again)
    }
  }

  private func failed() async throws(UploadError) -> [EarlierUpload] {
    let id = try await destinationID()
    do {
      // How an upload has ended is written a little later.
      try await journal.flush()
      return try await unfinished(at: id).filter { upload in
        let entry = upload.entry
        return entry.state == .failed && isOwn(upload.addition) && !entry.isClaimed && !board.isRunning(key(of: entry))
      }
    } catch {
      throw UploadError(journal: error)
    }
  }
}
