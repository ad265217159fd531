import Blobs

extension UploadQueue {
  /// Whether `item` may replace the version of `before` bytes that this journal sent under its name. It may if the file
  /// has only grown since, as when its writer had paused, and the server still has exactly that version. Replacing it
  /// then loses nothing.
  ///
  /// The journal keeps `before` until the new version is stored, so the next run after a kill checks again. Throws if
  /// the server's version could not be read, and the upload fails for that reason.
  func mayReplace(_ before: Int64, by item: UploadItem) async throws(UploadError) -> Bool {
    guard replacesGrown, !item.target.overwrite, item.source.access == .random, item.info.validator != nil,
      let now = item.info.length, before < now
    else { return false }
    do {
      // Another client may have written to the name since; only a comparison of the bytes can tell.
      try await uploader.verify(
        item.source, BlobInfo(length: before, validator: item.info.validator), at: item.target)
      return true
    } catch {
      // The server has other bytes, has no file, or does not let anyone read it. The server decides whether the name is
      // free.
      if error.side == .file, error.recovery == .giveUp { return false }
      throw error
    }
  }
}
