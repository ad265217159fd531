import Blobs

extension UploadQueue {
  /// Whether `item` may replace the file that the server has under its name, because the server's is the beginning of it:
  /// the file has only grown since, as when its writer had paused. Replacing it then loses nothing.
  ///
  /// Any earlier version counts, not only the last one whose response came: the server may have stored a version whose
  /// response was lost. Throws if the server's file could not be read, and the upload fails for that reason.
  func isBegunAtServer(_ item: UploadItem) async throws(UploadError) -> Bool {
    guard replacesGrown, !item.target.overwrite, item.source.access == .random, item.info.validator != nil,
      item.info.length != nil
    else { return false }
    do {
      // Another client may have written to the name since; only a comparison of the bytes can tell.
      try await uploader.verify(item.source, item.info, at: item.target, mayBeShort: true)
      return true
    } catch {
      // The server has other bytes, has no file, or does not let anyone read it. The server decides whether the name is
      // free.
      if error.side == .file, error.recovery == .giveUp { return false }
      throw error
    }
  }
}
