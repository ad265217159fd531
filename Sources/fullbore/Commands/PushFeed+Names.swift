import BlobUpload
import Blobs
import Glibc

extension PushFeed {
  /// The items without those whose name another file of this push has, whatever the options: to send them would lose
  /// one of the two.
  func withOwnNames(_ items: [UploadItem]) async -> [UploadItem] {
    guard let names else { return items }
    var kept: [UploadItem] = []
    for item in items {
      if !names.take(item.target.path, for: item.identity) {
        if let other = await otherFile(named: item, in: names, among: kept) {
          refuse(item, other)
          continue
        }
        names.give(item.target.path, to: item.identity)
      }
      kept.append(item)
    }
    return kept
  }

  /// Another file, with other bytes, that has the name of `item` in this push.
  private func otherFile(
    named item: UploadItem, in names: TakenNames, among batch: [UploadItem]
  ) async -> BytePath? {
    var others = batch.filter { $0.target.path == item.target.path }.map(\.identity)
    // What earlier batches have is in the journal, and so is what earlier pushes have sent. One that cannot be read ends
    // the push at the next claim.
    others += (try? await run.journal.sources(of: item.target.url.description)) ?? []
    for other in others where other != item.identity && names.isTaken(item.target.path, by: other) {
      let identity = item.identity
      switch await SourceReads().run({ haveSameBytes(identity, other, $0, noteRead: $1) }) {
      case .done(true): continue
      case .cancelled: return nil
      // What cannot be compared is not taken for the same.
      case .done(false), .stuck: return other
      }
    }
    return nil
  }

  private func refuse(_ item: UploadItem, _ other: BytePath) {
    run.counters.isIncomplete.store(true, ordering: .relaxed)
    refused(
      item,
      UploadError(
        .giveUp, .file,
        "\(item.identity) is not sent: \(other), which is another file, has that name in this push. Send each source "
          + "to a folder of its own, or give folders without a slash at their ends: then each arrives under its own "
          + "name, which is in {folder} of --layout"))
  }
}

/// Whether both are the same file, or have the same content, or the second is not there any more. Files elsewhere are
/// different ones. Blocks.
private func haveSameBytes(
  _ path: BytePath, _ other: BytePath, _ cancel: Cancellation, noteRead: () -> Void
) -> Bool {
  guard path.isAbsolute, other.isAbsolute else { return false }
  var (first, second) = (stat(), stat())
  if other.status(&second) != 0 { return errno == ENOENT || errno == ENOTDIR }
  guard path.status(&first) == 0 else { return false }
  if first.st_dev == second.st_dev, first.st_ino == second.st_ino { return true }
  guard first.st_size == second.st_size else { return false }
  do throws(BlobError) {
    let mine = try Digest.reading(FileSource(path), .sha256, cancel, noteRead: noteRead).value()
    return mine == (try Digest.reading(FileSource(other), .sha256, cancel, noteRead: noteRead).value())
  } catch {
    return false
  }
}
