import BlobMedia
import BlobUpload
import Blobs
import Platform
import Synchronization

/// The files of a push that arrived under a name with a number. Programs pair the files of one photo by their names, so the
/// push says how many files of a group arrived without this number, and names two of them.
final class RenamedFiles: Sendable {
  private struct Arrival {
    let number: Int
    let path: BytePath
  }
  /// Only renamed files, by their identity.
  private let renamed = Mutex<[BytePath: Arrival]>([:])
  /// Every file that is at the destination, and those that this run has sent. Each table has 16 bytes for a file.
  private let (arrived, sent) = (ClaimedNames(), ClaimedNames())

  func note(_ item: UploadItem, _ outcome: UploadOutcome) {
    switch outcome {
    case .sent where !outcome.foundAll(of: item.info.length): _ = sent.take(item.identity, for: item.identity)
    case .sent, .doneBefore: break
    case .busy, .failed: return
    }
    _ = arrived.take(item.identity, for: item.identity)
    guard item.isRenamed, let number = item.numbered?.number else { return }
    renamed.withLock { $0[item.identity] = Arrival(number: number, path: item.target.plainPath) }
  }

  /// A file that arrived in an earlier run and is not part of this one.
  func note(_ intent: JournalIntent, number: Int) {
    _ = arrived.take(intent.source, for: intent.source)
    if number > 1 { renamed.withLock { $0[intent.source] = Arrival(number: number, path: intent.path) } }
  }

  /// Reports the groups whose files arrived with different numbers.
  func tell(_ report: any PushReport) async {
    if renamed.withLock({ $0.isEmpty }) { return }
    let found = await BlockingPool.shared.runUntilCancelled { [self] _ in separated() }
    guard let count = found?.count, let first = found?.first else { return }
    report.notice(
      "\(first)\(count > 1 ? " (and so with \(Quantity.plural(count - 1, "more file")))" : ""): programs that pair files by "
        + "name take them for two photos. {folder} or {camera} in --layout keeps their names")
  }

  /// The number of files that arrived without the number of another file of their photo, and one of them in words. Lists each
  /// folder with a renamed file once, so it blocks.
  private func separated() -> (count: Int, first: String?) {
    let renamed = renamed.withLock { $0 }
    var (count, first): (Int, String?) = (0, nil)
    for (folder, files) in Dictionary(grouping: renamed.keys, by: \.folder) {
      guard let names = OpenFolder(folder, "", follow: true) else { continue }
      let groups = Dictionary(grouping: files, by: { GalleryName($0.name).stem })
      while let name = names.nextName() {
        let (found, other) = (GalleryName(name), BytePath(folder.bytes + name.bytes))
        guard found.kind != .other, isThere(other, in: arrived) else { continue }
        let number = renamed[other]?.number ?? 1
        let others = (groups[found.stem] ?? []).filter { file in
          guard let arrival = renamed[file], GalleryName(file.name).kind != .other, file != other else { return false }
          // Of two renamed files, only one is parted from the other.
          return number < arrival.number && (isThere(file, in: sent) || isThere(other, in: sent))
        }
        // The picture is named, if it has another number.
        let named = others.min { PhotoGroups.isBefore($0.name, $1.name) }
        guard let named, let arrival = renamed[named] else { continue }
        count += 1
        let text =
          "\(shown(named)) arrived as \(shown(arrival.path.name)), and \(shown(other)), which belongs to it, without that number"
        first = min(first ?? text, text)
      }
    }
    return (count, first)
  }

  private func isThere(_ file: BytePath, in table: ClaimedNames) -> Bool { table.isTaken(file, by: file) }
}
