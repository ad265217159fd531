import Blobs

extension UploadQueue {
  private static let mostLooks = 3

  /// An item whose source has to be looked at once more after `error`; nil: the error is final.
  ///
  /// The journal decides what becomes of what was sent before, as for any file with other numbers: it is compared, or the
  /// upload begins anew.
  func lookAgain(_ work: Claimed, _ id: Int64, _ progress: Progress, _ error: UploadError) async -> Claimed? {
    guard error.side == .source, let code = (error.cause as? BlobError)?.code else { return nil }
    let again: UploadItem?
    switch (code, work.item.info.validator) {
    case (.changed, let before?) where work.looks < Self.mostLooks: again = await renamed(work.item, before)
    case (.invalidated, nil): again = await begunAnew(work, error)
    default: again = nil
    }
    guard let again else { return nil }
    journal.released(id)
    // A journal that cannot be written ends it all with the next item; this one has its own error to tell.
    guard let claimed = try? await claim([again]).first else { return nil }
    progress.restart()
    return Claimed(again, claimed.claim, progress, looks: work.looks + 1)
  }

  /// An item that is no longer what was found, though its content may be: it was given another name, say, before it was
  /// opened. nil: it has other content, or cannot be had.
  private func renamed(_ item: UploadItem, _ before: Validator) async -> UploadItem? {
    guard let info = await info(of: item), info.length == item.info.length,
      let now = info.validator, now != before, now.likeness(to: before) == .unsure
    else { return nil }
    var again = item
    again.info = info
    return again
  }

  /// An item without a version whose source was lost while it was read, as a download is that was cut and cannot be gone
  /// on with. It is read again from its first byte, whatever it is by now, and what was sent of it is given up. nil: that
  /// was tried often enough, or it cannot be had.
  private func begunAnew(_ work: Claimed, _ error: UploadError) async -> UploadItem? {
    var failures = FailureCount()
    do throws(UploadError) {
      try await uploader.wait(after: error, &failures, atLeast: work.looks + 1, "\(work.item.target.path)")
    } catch {
      // The error that there was before is the one to tell.
      return nil
    }
    guard let info = await info(of: work.item) else { return nil }
    var again = work.item
    again.info = info
    again.target.length = info.length
    if again.target.modified != nil { again.target.modified = info.modified }
    return again
  }

  private func info(of item: UploadItem) async -> BlobInfo? {
    // Why it cannot be had does not matter: the error that there was before is told.
    try? await readingSource { cancel, _ throws(BlobError) in try item.source.info(cancel) }
  }
}
