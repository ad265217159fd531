import Blobs
import Platform

/// Decides what becomes of an item whose source has changed, was lost or was deleted while it was sent.
struct SourceChanges {
  let destination: QueueDestination
  let claims: ItemClaims
  /// As `UploadQueue.keepsOpen`.
  let keepsOpen: Bool
  private static let mostLooks = 3

  /// Returns the item to send again if its source must be examined once more after `error`; nil: the error is final.
  ///
  /// The journal then decides as for any file with changed metadata: the bytes sent before are compared, or a new
  /// upload starts.
  func lookAgain(_ work: ClaimedItem, _ id: Int64, _ progress: UploadProgress, _ error: UploadError) async
    -> ClaimedItem?
  {
    guard error.side == .source, let code = (error.cause as? BlobError)?.code else { return nil }
    let again: UploadItem?
    switch (code, work.item.info.validator) {
    case (.changed, let before?) where work.looks < Self.mostLooks: again = await renamed(work.item, before)
    case (.invalidated, nil): again = await begunAnew(work, error)
    default: again = nil
    }
    guard let again else { return nil }
    destination.journal.released(id)
    // A journal that cannot be written ends the queue at the next item; this item reports its own error.
    guard let claimed = try? await claims.claim([again]).first else { return nil }
    progress.restart()
    return ClaimedItem(
      again, claimed.claim, progress, looks: work.looks + 1, names: work.names, isReported: work.isReported)
  }

  /// Returns the item with new metadata if it differs from the version that was found, though its content may be the
  /// same, for example because it was renamed before it was opened. nil: it has other content, or cannot be read.
  private func renamed(_ item: UploadItem, _ before: Validator) async -> UploadItem? {
    guard let info = await info(of: item), info.length == item.info.length,
      let now = info.validator, now != before, now.match(with: before) == .unsure
    else { return nil }
    var again = item
    again.info = info
    return again
  }

  /// Returns an item without a version whose source was lost during reading, for example an interrupted download that
  /// cannot be resumed. The item is read again from its first byte, whatever its content is by now, and the bytes sent
  /// before are given up. nil: too many attempts were made, or the item cannot be read.
  private func begunAnew(_ work: ClaimedItem, _ error: UploadError) async -> UploadItem? {
    var failures = FailureCount()
    do throws(UploadError) {
      try await destination.uploader.wait(after: error, &failures, atLeast: work.looks + 1, "\(work.item.target.path)")
    } catch {
      // The caller reports the earlier error.
      return nil
    }
    guard let info = await info(of: work.item) else { return nil }
    var again = work.item
    again.info = info
    again.target.length = info.length
    if again.target.modified != nil { again.target.modified = info.modified }
    return again
  }

  /// Returns the error of a file that was deleted while it was sent, in place of `error`.
  func explained(_ error: UploadError, of item: UploadItem) async -> UploadError {
    guard error.isOfChangedSource, !keepsOpen else { return error }
    do throws(UploadError) {
      _ = try await readingSource { cancel, _ throws(BlobError) in try item.source.info(cancel) }
    } catch let reason {
      guard reason.isOfGoneFile else { return error }
      let text = "\(item.identity) was deleted while it was sent; nothing of it is at the destination"
      return UploadError(
        .giveUp, .source, text, cause: BlobError(.notFound, text, errno: ENOENT, cause: error.cause))
    }
    return error
  }

  /// Whether the next run goes on with the item, as after an interruption.
  func staysOpen(_ item: UploadItem, _ failure: UploadError) -> Bool {
    if keepsOpen {
      if failure.asksForCredentials || failure.isOfChangedSource { return true }
    } else if failure.isOfGoneFile {
      // The file may be put back, as of a card that is plugged in again.
      return true
    }
    return failure.side == .cancelled || failure.mayPass(for: item.source, item.info)
  }

  private func info(of item: UploadItem) async -> BlobInfo? {
    // The reason for a failure does not matter: the caller reports the earlier error.
    try? await readingSource { cancel, _ throws(BlobError) in try item.source.info(cancel) }
  }
}
