import Blobs

extension UploadQueue {
  /// Whether `item` may replace the version of `before` bytes that this journal sent under its name: the file has only
  /// grown since, as one does whose writer had paused, and the server still has exactly that version. Then replacing it
  /// loses nothing.
  ///
  /// The journal keeps `before` until the new version is done, so a run that was killed meanwhile is followed by one that
  /// asks again. Throws where the server's version could not be read, so that the upload fails for that reason.
  func mayReplace(_ before: Int64, by item: UploadItem) async throws(UploadError) -> Bool {
    guard replacesGrown, !item.target.overwrite, item.source.access == .random, item.info.validator != nil,
      let now = item.info.length, before < now
    else { return false }
    do {
      // Someone else may have written there since; only the bytes tell.
      try await uploader.verify(
        item.source, BlobInfo(length: before, validator: item.info.validator), at: item.target)
      return true
    } catch {
      // The server has other bytes, has nothing, or gives out nothing: whether the name is free is for it to decide.
      if error.side == .file, error.recovery == .giveUp { return false }
      throw error
    }
  }
}
