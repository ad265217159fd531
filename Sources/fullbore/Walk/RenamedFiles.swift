import BlobMedia
import BlobUpload
import Blobs
import Platform
import Synchronization

/// The files of a push that arrived under a name with a number. Programs pair the files of one photo by their names, so the
/// push names each file of its group that arrived without this number.
final class RenamedFiles: Sendable {
  private struct Arrival {
    let number: Int
    let path: BytePath
  }
  /// Only renamed files, by their identity.
  private let renamed = Mutex<[BytePath: Arrival]>([:])
  /// Every file that is at the destination, and those that this run has sent. Each table has 16 bytes for a file.
  private let (arrived, sent) = (ClaimedNames(), ClaimedNames())
  private static let mostNotices = 20

  func note(_ item: UploadItem, _ outcome: UploadOutcome) {
    switch outcome {
    case .sent where !outcome.foundAll(of: item.info.length): _ = sent.take(item.identity, for: item.identity)
    case .sent, .doneBefore: break
    case .busy, .failed: return
    }
    _ = arrived.take(item.identity, for: item.identity)
    guard item.isRenamed, let number = item.numbered?.number else { return }
    renamed.withLock { $0[item.identity] = Arrival(number: number, path: item.target.path) }
  }

  /// A file that arrived in an earlier run and is not part of this one.
  func note(_ intent: JournalIntent, number: Int) {
    _ = arrived.take(intent.source, for: intent.source)
    if number > 1 { renamed.withLock { $0[intent.source] = Arrival(number: number, path: intent.path) } }
  }

  /// Reports the groups whose files arrived with different numbers.
  func tell(_ report: any PushReport) async {
    if renamed.withLock({ $0.isEmpty }) { return }
    let notices = await BlockingPool.shared.runUntilCancelled { [self] _ in separated() } ?? []
    for notice in notices.prefix(Self.mostNotices) { report.notice(notice) }
    if notices.count > Self.mostNotices {
      report.notice("\(notices.count - Self.mostNotices) more files have another number than their photo")
    }
  }

  /// Lists each folder with a renamed file once, so it blocks.
  private func separated() -> [String] {
    let renamed = renamed.withLock { $0 }
    var notices: [String] = []
    for (folder, files) in Dictionary(grouping: renamed.keys, by: \.folder) {
      guard let names = OpenFolder(folder, "", follow: true) else { continue }
      let groups = Dictionary(grouping: files, by: { GalleryName($0.name).stem })
      while let name = names.nextName() {
        let (found, other) = (GalleryName(name), BytePath(folder.bytes + name.bytes))
        guard found.kind != .other, isThere(other, in: arrived) else { continue }
        for file in groups[found.stem] ?? [] where GalleryName(file.name).kind != .other && file != other {
          guard let arrival = renamed[file] else { continue }
          // Of two renamed files, only one notice names both.
          let number = renamed[other]?.number ?? 1
          guard number < arrival.number, isThere(file, in: sent) || isThere(other, in: sent) else { continue }
          notices.append(
            "\(shown(file)) arrived as \(shown(arrival.path.name)), and \(shown(other)), which belongs to it, without "
              + "that number: programs that pair files by name take them for two photos. {folder} or {camera} in "
              + "--layout keeps their names")
        }
      }
    }
    return notices.sorted()
  }

  private func isThere(_ file: BytePath, in table: ClaimedNames) -> Bool { table.isTaken(file, by: file) }
}
