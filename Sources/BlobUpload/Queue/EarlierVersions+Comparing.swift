import Blobs

extension EarlierVersions {
  /// Whether an item that an earlier run sent still has the same content.
  ///
  /// If only the inode or the change time differs, and size and modification time are the same, the item is read again
  /// and compared with the checksums recorded when it was sent. Without recorded checksums it counts as changed: it is
  /// sent again, and the server compares. Nothing can compare a sealed file: on a card or a network drive, where that is
  /// usual, it counts as unchanged.
  func isWhatWasSent(_ item: UploadItem, _ entry: JournalEntry) async throws(UploadError) -> Bool {
    guard let now = item.info.validator, let before = entry.intent.validator, now.match(with: before) == .unsure else {
      return true
    }
    let isSame: Bool
    if item.info.instanceLasts && now.hasSameNumbers(as: before) {
      isSame = true
    } else if item.isSealed {
      isSame = !item.info.instanceLasts
    } else {
      isSame = try await matchesChecksums(item, entry.id)
    }
    if isSame { destination.journal.recognized(entry.id, now) }
    return isSame
  }

  private func matchesChecksums(_ item: UploadItem, _ id: Int64) async throws(UploadError) -> Bool {
    guard let length = item.info.length, item.source.access == .random else { return false }
    let kept: (sent: [SentRange], parts: [PartReceipt])
    do { kept = try await destination.journal.checksums(of: id) } catch { throw UploadError(journal: error) }
    if !kept.parts.isEmpty {
      guard kept.parts.cover(length) else { return false }
      return try await kept.parts.match(item.source, item.info.validator)
    }
    // An empty list would match any empty file; every file that was read has at least one range.
    if kept.sent.isEmpty { return length == 0 }
    return try await readingSource { cancel, noteRead throws(BlobError) in
      try kept.sent.match(item.source, item.info, upTo: length, cancel, noteRead)
    }
  }

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
        try await destination.uploader.verify(
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

extension [PartReceipt] {
  /// Whether the receipts cover a file of this length without a gap.
  fileprivate func cover(_ length: Int64) -> Bool {
    var end: Int64 = 0
    for part in sorted(by: { $0.start < $1.start }) {
      if part.start != end { return false }
      end += part.held
    }
    return end == length
  }
}
