import Blobs

extension UploadQueue {
  /// Whether `item` may replace the file that the server has under its name, because that is a version of `before` and the
  /// beginning of `item`: the file has only grown since, as when its writer had paused. Replacing it then loses nothing.
  ///
  /// The version is the one that was last sent completely, or the one that was to be sent last, whose response may have
  /// been lost. A file of any other length is not ours. The journal keeps `before` until the new version is stored, so the
  /// next run after a kill checks again. Throws if the server's file could not be read, and the upload fails for that
  /// reason.
  func isBegunAtServer(_ item: UploadItem, since before: JournalEntry) async throws(UploadError) -> Bool {
    guard replacesGrown, !item.target.overwrite, item.source.access == .random, !item.isSealed,
      item.info.validator != nil, let now = item.info.length
    else { return false }
    for length in Set([before.intent.length, before.sentLength].compactMap { $0 }) where length < now {
      do {
        // Another client may have written to the name since; only a comparison of the bytes can tell.
        try await uploader.verify(
          item.source, BlobInfo(length: length, validator: item.info.validator), at: item.target)
        return true
      } catch {
        // The server has other bytes, has no file, or does not let anyone read it. The server decides whether the name is
        // free.
        if error.side != .file || error.recovery != .giveUp { throw error }
      }
    }
    return false
  }
}
