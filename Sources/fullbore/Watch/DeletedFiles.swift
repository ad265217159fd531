import BlobUpload
import Blobs
import Platform

/// Finds the unfinished uploads of files that were deleted in the folders of a watch.
struct DeletedFiles: Sendable {
  private let roots: [BytePath]

  /// `roots`: the watched folders.
  init(in roots: [BytePath]) { self.roots = roots.map { $0.absolute() } }

  /// The entries of deleted files, without those that a process is sending. Empty if a disk does not respond.
  func find(_ entries: [JournalEntry]) async -> [JournalEntry] {
    let lost = await LostSource.find(entries)
    let gone = entries.filter { if case .gone = lost[$0.id] { !$0.isLeftover } else { false } }
    if gone.isEmpty { return [] }
    let outcome = await SourceReads(patience: .seconds(5)).run { [self] cancel, noteProgress in
      gone.filter { entry in
        noteProgress()
        return !cancel.isCancelled && wasDeleted(entry.intent)
      }
    }
    if case .done(let deleted) = outcome { return deleted }
    return []
  }

  /// Whether the file of the intent, which is not there, was deleted. A disk or card that was unplugged below a watched
  /// folder takes its files along, and they may return: the closest folder that still exists must be on the disk of the
  /// file, and the watched folder must exist. This call blocks.
  func wasDeleted(_ intent: JournalIntent) -> Bool {
    guard let validator = intent.validator, let root = roots.first(where: { contains(intent.source, in: $0) }) else {
      return false
    }
    var folder = intent.source
    while let parent = parent(of: folder), contains(parent, in: root) {
      var status = stat()
      if parent.status(&status) == 0 {
        return FileStamp(status, at: parent).validator.isOnSameVolume(as: validator)
      }
      folder = parent
    }
    return false
  }

  private func contains(_ path: BytePath, in root: BytePath) -> Bool { WatchedRoot.contains(path, in: root) }

  /// nil for the root of the file system.
  private func parent(of path: BytePath) -> BytePath? {
    let slash = UInt8(ascii: "/")
    guard let end = path.bytes.dropLast().lastIndex(of: slash), path.bytes.count > 1 else { return nil }
    return BytePath(end == path.bytes.startIndex ? [slash] : Array(path.bytes[..<end]))
  }
}
