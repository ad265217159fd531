import Blobs

extension UploadQueue {
  private static let mostLooks = 3

  /// An item that is no longer what was found, though its content may be: it was given another name, say, before it was
  /// opened. It is asked again who it is, and claimed as that; nil: it has other content, or cannot be had.
  ///
  /// The journal decides what becomes of what was sent before, as for any file with other numbers: it is compared, or the
  /// upload begins anew.
  func lookAgain(_ work: Claimed, _ id: Int64, _ progress: Progress, _ error: UploadError) async -> Claimed? {
    let item = work.item
    guard work.looks < Self.mostLooks, error.side == .source, (error.cause as? BlobError)?.code == .changed,
      let before = item.info.validator
    else { return nil }
    let asked = try? await readingSource { cancel, _ throws(BlobError) in try item.source.info(cancel) }
    guard let info = asked, info.length == item.info.length,
      let now = info.validator, now != before, now.likeness(to: before) == .unsure
    else { return nil }
    var again = item
    again.info = info
    journal.released(id)
    // A journal that cannot be written ends it all with the next item; this one has its own error to tell.
    guard let claimed = try? await claim([again]).first else { return nil }
    progress.restart()
    return Claimed(again, claimed.claim, progress, looks: work.looks + 1)
  }
}
